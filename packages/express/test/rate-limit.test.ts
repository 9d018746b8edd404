import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import express, { type ErrorRequestHandler, type Request, type Response } from 'express'
import request from 'supertest'
import { byApiKey, byUser, decisionOf, rateLimit } from '../src/index.js'
import { appWith } from './served.js'

const policies = [slidingLog({ limit: 2, window: '1m' })]
const stopped = () => createLimiter({ name: 'api', policies, store: memoryStore({ clock: () => 0 }) })

describe('rateLimit', () => {
  it('serves requests up to the limit and answers 429 beyond', async () => {
    const app = appWith((app) => app.use(rateLimit({ limit: 2, window: '1m' })))
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await request(app).get('/')).status)
    expect(statuses).toEqual([200, 200, 429, 429])
  })

  it('sets the headers on what it lets pass', async () => {
    const app = appWith((app) => app.use(rateLimit({ limiter: stopped(), reset: 'delta' })))
    const { headers } = await request(app).get('/')
    expect(headers).toMatchObject({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '60',
    })
  })

  it('sets the headers on what it denies', async () => {
    const app = appWith((app) => app.use(rateLimit({ limiter: stopped(), reset: 'delta', cost: () => 3 })))
    const { headers } = await request(app).get('/')
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '2' })
  })

  it('denies with problem details', async () => {
    const app = appWith((app) => app.use(rateLimit({ limiter: stopped() })))
    for (let i = 0; i < 2; i++) await request(app).get('/')
    const { headers, body } = await request(app).get('/')
    expect(headers).toMatchObject({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'retry-after': '60',
    })
    expect(body).toMatchObject({ status: 429, 'violated-policies': ['api'] })
  })

  it.each(['head', 'options', 'post'] as const)('counts a %s request as any other', async (method) => {
    const app = appWith((app) => app.use(rateLimit({ limit: 1, window: '1m' })))
    await request(app).get('/')
    expect((await request(app)[method]('/')).status).toBe(429)
  })

  it('denies a HEAD request without a body', async () => {
    const app = appWith((app) => app.use(rateLimit({ limiter: stopped(), cost: () => 3 })))
    const { status, headers, text } = await request(app).head('/')
    expect({ status, text }).toEqual({ status: 429, text: undefined })
    expect(headers['content-type']).toBe('application/problem+json')
  })

  it('has a name for stack traces and profiles', () => {
    expect(rateLimit({ limit: 1, window: '1m' }).name).toBe('rateLimit')
  })

  it('passes on before it returns when the store is memory', () => {
    const middleware = rateLimit({ limit: 1, window: '1m', key: () => 'everybody' })
    const next = jest.fn()
    middleware({} as Request, { setHeader: jest.fn() } as unknown as Response, next)
    expect(next).toHaveBeenCalledWith()
  })

  it('limits each user on its own', async () => {
    const app = appWith((app) => {
      const user = (req: Request) => req.get('x-user')
      app.use(rateLimit({ limit: 1, window: '1m', key: byUser(user, 'read') }))
    })
    await request(app).get('/').set('x-user', 'ann')
    expect((await request(app).get('/').set('x-user', 'bob')).status).toBe(200)
    expect((await request(app).get('/').set('x-user', 'ann')).status).toBe(429)
  })

  it('limits each API key on its own', async () => {
    const app = appWith((app) => app.use(rateLimit({ limit: 1, window: '1m', key: byApiKey() })))
    await request(app).get('/').set('X-API-Key', 'one')
    expect((await request(app).get('/').set('X-API-Key', 'two')).status).toBe(200)
    expect((await request(app).get('/').set('X-API-Key', 'one')).status).toBe(429)
  })

  it('charges what the body costs', async () => {
    const app = appWith((app) => {
      app.use(express.json())
      app.use(rateLimit({ limit: 9, window: '1m', cost: (req) => req.body.items.length }))
    })
    const { headers } = await request(app)
      .post('/')
      .send({ items: [1, 2, 3] })
    expect(headers['x-ratelimit-remaining']).toBe('6')
  })

  it('limits one route alone', async () => {
    const app = appWith((app) => app.get('/limited', rateLimit({ limit: 1, window: '1m' })))
    await request(app).get('/limited')
    expect((await request(app).get('/limited')).status).toBe(429)
    expect((await request(app).get('/free')).headers).not.toHaveProperty('x-ratelimit-limit')
  })

  it('answers with onDenied in place of the problem details', async () => {
    const app = appWith((app) => {
      const onDenied = (_req: Request, res: Response) => res.json({ slow: 'down' })
      app.use(rateLimit({ limiter: stopped(), cost: () => 3, onDenied }))
    })
    const { status, headers, body } = await request(app).get('/')
    expect({ status, body }).toEqual({ status: 429, body: { slow: 'down' } })
    expect(headers['content-type']).toMatch('application/json')
  })

  it('lets everything pass in shadow mode, without Retry-After', async () => {
    const app = appWith((app) => app.use(rateLimit({ limit: 1, window: '1m', enforce: false })))
    await request(app).get('/')
    const { status, headers } = await request(app).get('/')
    expect(status).toBe(200)
    expect(headers).not.toHaveProperty('retry-after')
  })

  it('stops a denied request whose response has begun, and leaves the rest to who began it', async () => {
    const handler = jest.fn()
    const app = appWith((app) => {
      app.use((_req, res, next) => {
        res.write('begun, ')
        next()
        res.end('ended')
      })
      app.use(rateLimit({ limiter: stopped(), cost: () => 3 }), handler)
    })
    const { status, text } = await request(app).get('/')
    expect({ status, text }).toEqual({ status: 200, text: 'begun, ended' })
    expect(handler).not.toHaveBeenCalled()
  })
})

describe('several limiters on one request', () => {
  it('are merged into one set of headers', async () => {
    const app = appWith((app) => {
      app.use(rateLimit({ limit: 9, window: '1m', name: 'all', headers: ['x-ratelimit', 'ietf'] }))
      app.use(rateLimit({ limit: 4, window: '1m', name: 'few', headers: ['x-ratelimit', 'ietf'] }))
      app.use(rateLimit({ limit: 7, window: '1m', name: 'some', headers: ['x-ratelimit', 'ietf'] }))
    })
    const { headers } = await request(app).get('/')
    expect(headers).toMatchObject({
      'x-ratelimit-limit': '4',
      'ratelimit-policy': '"all";q=9;w=60, "few";q=4;w=60, "some";q=7;w=60',
    })
  })

  it('are merged across routers', async () => {
    const app = appWith((app) => {
      const router = express.Router().use(rateLimit({ limit: 4, window: '1m', name: 'few' }))
      app.use(rateLimit({ limit: 9, window: '1m', name: 'all' }), router)
    })
    expect((await request(app).get('/')).headers['x-ratelimit-limit']).toBe('4')
  })
})

describe('decisionOf', () => {
  it('gives handlers the decision, to settle for example', async () => {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 99, window: '1m' })] })
    const app = appWith((app) => {
      app.use(rateLimit({ limiter, key: () => 'k' }), async (req, res) => {
        await decisionOf(req)!.settle(40)
        res.end()
      })
    })
    await request(app).get('/')
    expect((await limiter.peek('k')).remaining).toBe(59)
  })

  it('is that of the limiter of a name', async () => {
    const seen: (string | undefined)[] = []
    const app = appWith((app) => {
      for (const name of ['first', 'second']) app.use(rateLimit({ limit: 9, window: '1m', name }))
      app.use((req, _res, next) => {
        seen.push(
          decisionOf(req)?.limiter,
          decisionOf(req, 'first')?.limiter,
          decisionOf(req, 'none')?.limiter,
        )
        next()
      })
    })
    await request(app).get('/')
    expect(seen).toEqual(['second', 'first', undefined])
  })
})

describe('an error', () => {
  const onError: ErrorRequestHandler = (error, _req, res, _next) => void res.status(500).send(error.message)
  const fail = () => {
    throw new Error('no database')
  }

  it.each(['key', 'cost', 'skip', 'policies', 'onDenied'] as const)(
    'thrown in %s reaches the error handler',
    async (name) => {
      const limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1m' })] })
      const options = { limiter, cost: () => 3, [name]: fail }
      const app = appWith((app) => app.use(rateLimit(options)).use(onError))
      expect(await request(app).get('/')).toMatchObject({ status: 500, text: 'no database' })
    },
  )

  it.each(['key', 'cost', 'skip', 'policies', 'onDenied'] as const)(
    'that %s rejects with reaches the error handler',
    async (name) => {
      const limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1m' })] })
      const options = { limiter, cost: () => 3, [name]: async () => fail() }
      const app = appWith((app) => app.use(rateLimit(options)).use(onError))
      expect(await request(app).get('/')).toMatchObject({ status: 500, text: 'no database' })
    },
  )

  it('of a closed limiter reaches the error handler', async () => {
    const limiter = stopped()
    await limiter.close()
    const app = appWith((app) => app.use(rateLimit({ limiter })).use(onError))
    expect(await request(app).get('/')).toMatchObject({ status: 500, text: 'the limiter is closed' })
  })

  it('in a handler behind an async limiter is passed on once', async () => {
    const handled = jest.fn(onError)
    const app = express()
    app.use(rateLimit({ limit: 9, window: '1m', key: async () => 'k' }), fail, handled)
    await request(app).get('/')
    expect(handled).toHaveBeenCalledTimes(1)
  })
})
