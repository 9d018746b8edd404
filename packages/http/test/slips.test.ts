import { gcra, slidingLog } from '@sluice/core'
import express from 'express'
import { Hono } from 'hono'
import Koa from 'koa'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { inspect } from 'node:util'
import { rateLimit } from '@sluice/express'
import { rateLimit as rateLimitHono } from '@sluice/hono'
import { rateLimit as rateLimitKoa } from '@sluice/koa'
import { byApiKey, byIp, byUser } from '../src/index.js'
import { guardOf, type PlainOptions } from './plain-platform.js'

const express4 = createRequire(resolve('package.json'))('express4') as typeof express
const LIMIT = { limit: 9, window: '1m' } as const

describe('a first attempt that cannot work is refused at start, and the line of its message works', () => {
  it.each<[string, object]>([
    ['a key function that was not called', { ...LIMIT, key: byIp }],
    ['one of users', { ...LIMIT, key: byUser }],
    ['one of API keys', { ...LIMIT, key: byApiKey }],
    ['one of a limit of several', { limits: [{ ...LIMIT, name: 'a', key: byIp }] }],
  ])('%s', (_, options) => {
    const line = lineOf(() => rateLimit(options))
    const key = run(`({ ${line} })`) as object
    expect(() => rateLimit({ ...LIMIT, ...key })).not.toThrow()
  })

  it('a function as limit', async () => {
    const line = lineOf(() => rateLimit({ limit: (() => 5) as unknown as number, window: '1m' }))
    const app = express().use(run(line.replace('; ', '; return ')) as express.RequestHandler)
    app.get('/', (_req, res) => res.end())
    const limits = [{ 'X-Paid': 'yes' }, {}].map((headers) => answerOf(app, headers))
    expect((await Promise.all(limits)).map(({ headers }) => headers.get('x-ratelimit-limit'))).toEqual([
      '1000',
      '100',
    ])
  })

  it('trustProxy, which is a setting of Express', () => {
    const app = express()
    run(
      lineOf(() => rateLimit({ ...LIMIT, trustProxy: 1 } as object)),
      { app },
    )
    expect(app.get('trust proxy')).toBe(1)
  })

  it('and of Koa', () => {
    const koa = run(
      lineOf(() => rateLimitKoa({ ...LIMIT, trustProxy: 1 } as object)),
      { Koa },
    ) as Koa
    expect([koa.proxy, koa.maxIpsCount]).toEqual([true, 1])
  })
})

describe('a middleware that was not called is refused when the route is set up, with the line to write', () => {
  const uncalled = rateLimit as unknown as express.RequestHandler

  it.each<[string, () => unknown]>([
    ['Express 5', () => express().use(uncalled)],
    ['Express 5 under a path', () => express().use('/api', uncalled)],
    ['Express 4', () => express4().use(uncalled)],
    ['Koa', () => new Koa().use(rateLimitKoa as unknown as Koa.Middleware)],
  ])('%s', (_, use) => expect(lineOf(use)).toMatch(LINE))

  it.each([rateLimit, rateLimitKoa])('and what looks at functions does not meet it: %p', (make) => {
    expect(inspect(make, { showHidden: true })).toContain('[Getter]')
    expect(inspect(make)).toBe('[Function: rateLimit]')
    expect({ make }).toEqual({ make })
    expect(Object.entries(make)).toEqual([])
    expect(
      typeof jest.createMockFromModule<typeof import('@sluice/express')>('@sluice/express').rateLimit,
    ).toBe('function')
  })
})

describe('elsewhere it is refused with the first request', () => {
  it('a router of Express', async () => {
    const errors = jest.spyOn(console, 'error').mockReturnValue()
    const app = express().use(express.Router().use(rateLimit as unknown as express.RequestHandler))
    expect((await answerOf(app)).status).toBe(500)
    errors.mockRestore()
  })

  it.each<[string, (...args: unknown[]) => unknown, unknown[]]>([
    ['Express', rateLimit as never, [{ url: '/', method: 'GET' }, {}, () => {}]],
    ['Koa', rateLimitKoa as never, [new Koa().createContext({} as never, {} as never), () => {}]],
  ])('%s says so', (_, given, args) => expect(lineOf(() => given(...args))).toMatch(LINE))

  it('Hono says so', async () => {
    let message = ''
    const app = new Hono().onError((error, c) => {
      message = error.message
      return c.text('', 500)
    })
    await app.use(rateLimitHono as never).request('/')
    expect(message).toMatch(LINE)
  })
})

const LINE = /app\.use\(rateLimit\(\{ limit: 100, window: '1m' \}\)\)$/

/** The line to write, of the error that is thrown. */
function lineOf(refused: () => unknown): string {
  try {
    refused()
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    expect(code).toBe('INVALID_OPTION')
    return message.split('Write: ')[1]!
  }
  throw new Error('nothing was refused')
}

/** The value of a line as pasted into a program. */
function run(line: string, names: object = {}): unknown {
  const scope = { rateLimit, slidingLog, byIp, byUser, byApiKey, ...names }
  // oxlint-disable-next-line typescript/no-implied-eval -- lines that messages tell users to write
  const program = new Function(...Object.keys(scope), line.includes('return ') ? line : `return ${line}`)
  return program(...Object.values(scope))
}

async function answerOf(listener: RequestListener, headers: Record<string, string> = {}): Promise<Response> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { headers })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe('a value that another package takes, or that people write at first', () => {
  it.each<[object, string]>([
    [{ limit: '100' }, 'got "100"; write 100'],
    [{ window: '15 min' }, 'got "15 min"; write \'15m\''],
    [{ limit: undefined, window: undefined, policies: gcra({ limit: 1, window: '1s' }) }, 'such as [gcra({'],
    [{ headers: true }, "'x-ratelimit' (the default)"],
    [{ headers: 'draft-8' }, "'ietf' (the newest draft)"],
    [{ skip: ['/health'] }, "such as (req) => req.url === '/health'"],
    [{ key: 'ip' }, 'such as byIp()'],
    [
      { message: 'slow down' },
      "there is no option 'message' of rateLimit: npx @sluice/cli option message finds",
    ],
  ])('gets a message that says what to write: %p', (given, says) => {
    const options = { limit: 1, window: '1m', ...given } as PlainOptions
    expect(() => guardOf(options)).toThrow(
      expect.objectContaining({ message: expect.stringContaining(says) }),
    )
  })
})
