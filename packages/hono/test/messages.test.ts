import { createAdaptorServer, upgradeWebSocket } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { createLimiter, type Limiter, memoryStore, slidingLog, type Store } from '@sluice/core'
import { Hono } from 'hono'
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import { limitMessages, type Message, type MessageLimitOptions } from '../src/index.js'

let server: Server
let clients: WebSocket[]

beforeEach(() => void (clients = []))

afterEach(async () => {
  for (const client of clients) client.terminate()
  server?.close()
})

describe('messages of a WebSocket', () => {
  it('reach the handler up to the limit; the next closes the connection', async () => {
    const url = await serve({ limit: 2, window: '1m', connInfo: getConnInfo })
    const { client, received } = await connect(url)
    for (const text of ['a', 'b', 'c']) client.send(text)
    const [code, reason] = (await once(client, 'close')) as [number, Buffer]
    expect([received, code, String(reason)]).toEqual([['a', 'b'], 1008, 'Too Many Requests'])
  })

  it('are counted over all connections of an address', async () => {
    const url = await serve({ limit: 2, window: '1m', connInfo: getConnInfo })
    const [one, two] = [await connect(url), await connect(url)]
    for (const { client } of [one, two]) {
      client.send('a')
      await once(client, 'message')
    }
    two.client.send('b')
    expect((await once(two.client, 'close'))[0]).toBe(1008)
  })

  it('beyond the limit are left to onDenied, which gets message and decision', async () => {
    const onDenied: MessageLimitOptions['onDenied'] = ({ event, ws }, _same, { limit }) =>
      ws.send(`${event.data} is over ${limit}`)
    const url = await serve({ limiter: stopped(1), key: byHeader, onDenied })
    const { client, received } = await connect(url)
    for (const text of ['a', 'b', 'c']) client.send(text)
    while (received.length < 3) await once(client, 'message')
    expect(received).toEqual(['a', 'b is over 1', 'c is over 1'])
  })

  it('keep their order while a store is asked, and every one is counted', async () => {
    const waits = [3, 1, 2]
    const limiter = stopped(2)
    const key = async () => {
      for (let turns = waits.shift()!; turns > 0; turns--) await new Promise(setImmediate)
      return 'k'
    }
    const onDenied = ({ ws }: Message) => ws.send('denied')
    const { client, received } = await connect(await serve({ limiter, key, onDenied }))
    for (const text of ['a', 'b', 'c']) client.send(text)
    while (received.length < 3) await once(client, 'message')
    // The first message waited longest and was counted last.
    expect(received).toEqual(['denied', 'b', 'c'])
  })

  it('of a denied address close the connection uncounted', async () => {
    const limiter = stopped(2)
    const url = await serve({ limiter, key: () => 'k', connInfo: getConnInfo, deny: ['127.0.0.1'] })
    const { client } = await connect(url)
    client.send('a')
    const [code, reason] = (await once(client, 'close')) as [number, Buffer]
    expect([code, String(reason), (await limiter.peek('k')).remaining]).toEqual([1008, 'Forbidden', 2])
  })

  it('that fail close the connection, and the error is a warning', async () => {
    const limiter = stopped(2)
    const warnings: unknown[] = []
    limiter.on('warning', (warning) => void warnings.push(warning))
    const key = () => Promise.reject(new Error('no database'))
    const { client } = await connect(await serve({ limiter, key }))
    client.send('a')
    expect((await once(client, 'close'))[0]).toBe(1011)
    const message = 'a message failed, and its connection was closed: Error: no database'
    expect(warnings).toEqual([{ code: 'MESSAGE_FAILED', message }])
  })
})

describe('limitMessages', () => {
  it.each<[object, string]>([
    [{ limit: 1, window: '1m' }, 'connInfo is needed for addresses'],
    [{ limit: 1, window: '1m', key: () => 'k', deny: ['10.0.0.0/8'] }, 'connInfo is needed for addresses'],
    [{ limit: 1, window: '1m', key: () => 'k', headers: 'ietf' }, "there is no option 'headers'"],
    [
      { limit: 1, window: '1m', key: () => 'k', windowMs: 5 },
      "there is no option 'windowMs': it is called 'window'",
    ],
  ])('refuses %j', (options, message) => {
    expect(() => limitMessages(options as MessageLimitOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
    )
  })
})

const byHeader = ({ c }: Message) => c.req.header('x-user')!

function stopped(limit: number): Limiter {
  const store: Store = memoryStore({ clock: () => 0 })
  return createLimiter({ name: 'api', policies: [slidingLog({ limit, window: '1m' })], store })
}

async function serve(options: MessageLimitOptions): Promise<string> {
  const echo = limitMessages(options)(() => ({ onMessage: (event, ws) => ws.send(String(event.data)) }))
  const app = new Hono().get('/', upgradeWebSocket(echo))
  const websocket = { server: new WebSocketServer({ noServer: true }) as never }
  server = (createAdaptorServer({ fetch: app.fetch, websocket }) as Server).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function connect(url: string) {
  const client = new WebSocket(url, { headers: { 'x-user': 'ann' } })
  clients.push(client)
  const received: string[] = []
  client.on('message', (data: Buffer) => void received.push(String(data)))
  await once(client, 'open')
  return { client, received }
}
