import type { ErrorRequestHandler, Express } from 'express'
import request from 'supertest'
import { rateLimit } from '../src/index.js'

/** Version 4 under an alias; the types are those of version 5, which this uses nothing new of. */
const express = require('express4') as () => Express

const appWith = (prepare: (app: Express) => void): Express => {
  const app = express()
  prepare(app)
  app.use((_req, res) => void res.send('served'))
  return app
}

afterEach(() => jest.restoreAllMocks())

describe('rateLimit on Express 4', () => {
  it('serves requests up to the limit and answers 429 beyond, with headers', async () => {
    const app = appWith((app) => app.use(rateLimit({ limit: 1, window: '1m', reset: 'delta' })))
    const [allowed, denied] = [await request(app).get('/'), await request(app).get('/')]
    expect([allowed.status, allowed.headers['x-ratelimit-remaining']]).toEqual([200, '0'])
    expect([denied.status, denied.headers['retry-after'], denied.type]).toEqual([
      429,
      '60',
      'application/problem+json',
    ])
  })

  it('hands errors to the error handler', async () => {
    const fail: ErrorRequestHandler = (error: { code: string }, _req, res, _next) =>
      void res.status(500).send(error.code)
    const app = appWith((app) => app.use(rateLimit({ limit: 1, window: '1m', cost: () => -1 })).use(fail))
    expect((await request(app).get('/')).text).toBe('INVALID_COST')
  })

  it('counts callers by their own address whatever X-Forwarded-For says, unless a proxy is trusted', async () => {
    const app = appWith((app) => app.use(rateLimit({ limit: 1, window: '1m' })))
    const status = async (forwarded: string) =>
      (await request(app).get('/').set('X-Forwarded-For', forwarded)).status
    jest.spyOn(process, 'emitWarning').mockImplementation()
    expect([await status('1.1.1.1'), await status('2.2.2.2')]).toEqual([200, 429])
    app.set('trust proxy', 1)
    expect([await status('1.1.1.1'), await status('2.2.2.2'), await status('2.2.2.2')]).toEqual([
      200, 200, 429,
    ])
  })

  it('tells that a limiter was made inside a handler', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation()
    const app = appWith((app) =>
      app.use((req, res, next) => rateLimit({ limit: 1, window: '1m' })(req, res, next)),
    )
    await request(app).get('/')
    expect(warned).toHaveBeenCalledWith(expect.any(String), {
      type: 'SluiceWarning',
      code: 'LIMITER_IN_HANDLER',
    })
  })
})
