import { createLimiter, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import type { RequestHandler } from 'express'
import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import request from 'supertest'
import { rateLimit } from '../src/index.js'
import { appWith, closeServers, listen } from './served.js'

let limiter: Limiter

beforeEach(() => {
  const policies = [slidingLog({ limit: 4, window: '1m' })]
  limiter = createLimiter({ name: 'api', policies, store: memoryStore({ clock: () => 0 }) })
})
afterEach(closeServers)

describe('requests pipelined on one connection', () => {
  it('are each counted and told what was left for them', async () => {
    const port = await listen(appWith((app) => app.use(rateLimit({ limiter }))))
    const socket = connect(port, '127.0.0.1')
    socket.end(GET.repeat(4) + LAST_GET)
    const responses = await text(socket)
    expect(responses.match(/(?<=HTTP\/1.1 )\d+/g)).toEqual(['200', '200', '200', '200', '429'])
    expect(responses.match(/(?<=X-RateLimit-Remaining: )\d+/g)).toEqual(['3', '2', '1', '0', '0'])
  })
})

describe('charge by outcome', () => {
  it.each([200, 304, 500])('gives back what a response of %i took when it says so', async (status) => {
    const app = appWith((app) => app.use(limitedByOutcome(), (_req, res) => void res.status(status).end()))
    await request(app).get('/')
    expect(await left()).toBe(4)
  })

  it('sees the status of the response', async () => {
    const charge = jest.fn((_req, res) => res.statusCode < 400)
    const app = appWith((app) => app.get('/ok', rateLimit({ limiter, charge, key: () => 'k' })))
    await request(app).get('/ok')
    expect(charge).toHaveReturnedWith(true)
    expect(await left()).toBe(3)
  })

  it('keeps the charge when the caller hangs up before the response', async () => {
    const { socket, closed } = await interrupted((_req, res) => void res.once('close', () => res.end()))
    socket.destroy()
    await closed
    expect(await left()).toBe(3)
  })

  it('keeps the charge when the caller hangs up in the middle of the response', async () => {
    const { socket, closed } = await interrupted((_req, res) => {
      res.write('x'.repeat(8_000_000))
      res.end('x'.repeat(8_000_000))
    })
    socket.pause()
    socket.destroy()
    await closed
    expect(await left()).toBe(3)
  })
})

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
const LAST_GET = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'

function limitedByOutcome(): RequestHandler {
  return rateLimit({ limiter, key: () => 'k', charge: () => false })
}

/** A request that has reached its handler, and the end of its response on the server. */
async function interrupted(handler: RequestHandler): Promise<{ socket: Socket; closed: Promise<unknown> }> {
  const handling = new EventEmitter()
  const app = appWith((app) => {
    app.use(limitedByOutcome(), (req, res, next) => {
      handling.emit('begun', res)
      handler(req, res, next)
    })
  })
  const socket = connect(await listen(app), '127.0.0.1')
  socket.write(GET)
  const [res] = await once(handling, 'begun')
  return { socket, closed: once(res, 'close') }
}

async function left(): Promise<number> {
  return (await limiter.peek('k')).remaining
}
