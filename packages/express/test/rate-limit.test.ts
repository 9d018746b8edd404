import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import express, { type Express, type Request, type Response } from 'express'
import request from 'supertest'
import { byApiKey, byUser, decisionOf, rateLimit } from '../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

describe('rateLimit', () => {
  it.each<[string, (req: Request, res: Response) => unknown, RegExp]>([
    ['text', () => 'slow down', /^slow down$/],
    ['an object', () => ({ error: 'slow down' }), /^{"error":"slow down"}$/],
    ['a promise', async () => ['slow', 'down'], /^\["slow","down"\]$/],
    ['what was sent by then', (_req, res) => (res.send('sent'), 'returned'), /^sent$/],
    ['an answer that comes later', (_req, res) => setTimeout(() => res.send('later'), 5), /^later$/],
  ])('sends what onDenied returns: %s', async (_, onDenied, body) => {
    const app = appWith((app) => app.use(rateLimit({ limit: 1, window: '1m', cost: () => 2, onDenied })))
    const { status, text, headers } = await request(app).get('/')
    expect([status, text, headers['retry-after']]).toEqual([429, expect.stringMatching(body), undefined])
  })

  it('has a name for stack traces and profiles', () => {
    expect(rateLimit({ limit: 1, window: '1m' }).name).toBe('rateLimit')
  })

  it('passes on before it returns with a memory store', () => {
    const middleware = rateLimit({ limit: 1, window: '1m', key: () => 'everybody' })
    const next = jest.fn()
    middleware({} as Request, { setHeader: jest.fn() } as unknown as Response, next)
    expect(next).toHaveBeenCalledWith()
  })

  it('limits each user separately', async () => {
    const app = appWith((app) => {
      const user = (req: Request) => req.get('x-user')
      app.use(rateLimit({ limit: 1, window: '1m', key: byUser(user, 'read') }))
    })
    await request(app).get('/').set('x-user', 'ann')
    expect((await request(app).get('/').set('x-user', 'bob')).status).toBe(200)
    expect((await request(app).get('/').set('x-user', 'ann')).status).toBe(429)
  })

  it('limits each API key separately', async () => {
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

  it('limits only its route', async () => {
    const app = appWith((app) => app.get('/limited', rateLimit({ limit: 1, window: '1m' })))
    await request(app).get('/limited')
    expect((await request(app).get('/limited')).status).toBe(429)
    expect((await request(app).get('/free')).headers).not.toHaveProperty('x-ratelimit-limit')
  })

  it('merges its headers across routers', async () => {
    const app = appWith((app) => {
      const router = express.Router().use(rateLimit({ limit: 4, window: '1m', name: 'few' }))
      app.use(rateLimit({ limit: 9, window: '1m', name: 'all' }), router)
    })
    expect((await request(app).get('/')).headers['x-ratelimit-limit']).toBe('4')
  })

  it('stops a denied request whose response has begun, and leaves the response to its handler', async () => {
    const handler = jest.fn()
    const app = appWith((app) => {
      app.use((_req, res, next) => {
        res.write('begun, ')
        next()
        res.end('ended')
      })
      app.use(rateLimit({ limiter: ofNine(), cost: () => 10 }), handler)
    })
    const { status, text } = await request(app).get('/')
    expect({ status, text }).toEqual({ status: 200, text: 'begun, ended' })
    expect(handler).not.toHaveBeenCalled()
  })

  it('passes on the error of a handler after an async limiter once', async () => {
    const handled = jest.fn((_error, _req, res, _next) => void res.status(500).end())
    const fail = () => {
      throw new Error('no database')
    }
    const app = express().use(rateLimit({ limit: 9, window: '1m', key: async () => 'k' }), fail, handled)
    await request(app).get('/')
    expect(handled).toHaveBeenCalledTimes(1)
  })

  it('distinguishes a trust proxy that is a function from one that is true', async () => {
    const limiter = ofNine()
    const warnings: string[] = []
    limiter.on('warning', ({ code }) => void warnings.push(code))
    const app = appWith((app) => app.set('trust proxy', () => true).use(rateLimit({ limiter })))
    await request(app).get('/').set('X-Forwarded-For', '198.51.100.1')
    expect(warnings).toEqual([])
  })
})

describe('headers, where other middleware has wrapped writeHead before', () => {
  /** As on-headers 1.0 does, by which compression and sessions add theirs. */
  function onHeaders(res: Response): void {
    const inherited = Reflect.get(res, 'writeHead') as (...args: unknown[]) => Response
    res.writeHead = function (this: Response, status: number, headers: object = {}): Response {
      for (const [name, value] of Array.isArray(headers) ? headers : Object.entries(headers))
        this.setHeader(name, value)
      this.setHeader('X-Other', 'too')
      return inherited.call(this, status)
    } as never
  }

  it.each<[string, (res: Response) => unknown]>([
    ['sent', (res) => res.send('served')],
    ['written with headers', (res) => res.writeHead(200, { 'X-Own': '1' }).end('served')],
    ['written with pairs', (res) => res.writeHead(200, [['X-Own', '1']]).end('served')],
  ])('are on each response that is %s, from the first on', async (_, answer) => {
    const app = createApp(answer)
    for (const left of ['2', '1', '0']) {
      const { status, headers } = await request(app).get('/')
      expect([status, headers['x-ratelimit-remaining'], headers['x-other']]).toEqual([200, left, 'too'])
      expect(Object.keys(headers)).not.toContain('x')
    }
  })

  it('are on the response to a request that was under way when the first was counted', async () => {
    let go = (): void => {}
    const held = new Promise<void>((resolve) => (go = resolve))
    let arrived = (): void => {}
    const under = new Promise<void>((resolve) => (arrived = resolve))
    const app = createApp(
      (res) => res.send('served'),
      (req) => {
        if (req.path !== '/held') return undefined
        arrived()
        return held
      },
    )
    const server = app.listen(0)
    const first = request(server)
      .get('/held')
      .then(({ headers }) => headers)
    await under
    await request(server).get('/')
    go()
    expect(await first).toMatchObject({ 'x-ratelimit-remaining': '1', 'x-other': 'too' })
    server.close()
  })

  /** An application of a copy of Express in which no response was limited yet. */
  function createApp(answer: (res: Response) => unknown, before: (req: Request) => unknown = () => {}) {
    let fresh!: typeof express
    jest.isolateModules(() => void (fresh = require('express') as typeof express))
    const app = fresh()
    app.use(async (req, res, next) => {
      onHeaders(res)
      await before(req)
      next()
    })
    app.use(rateLimit({ limit: 3, window: '1m' }))
    return app.use((_req, res) => void answer(res))
  }
})

describe('a limiter', () => {
  it.each([
    ['5', express],
    ['4', require('express4') as typeof express],
  ])('is reported once when it is made for each request of Express %s', async (_, createApp) => {
    await jest.isolateModulesAsync(async () => {
      const { rateLimit } = await import('../src/index.js')
      const warned = expectWarnings(['LIMITER_IN_HANDLER'])
      const app = createApp().use((req: Request, res: Response, next) =>
        rateLimit({ limit: 1, window: '1m' })(req, res, next),
      )
      for (let i = 0; i < 3; i++) await request(app).get('/')
      expect(warned).toHaveLength(1)
    })
  })

  it('is reported when it is mounted twice on the way to a route', async () => {
    const limiter = ofNine()
    const warnings: string[] = []
    limiter.on('warning', ({ code }) => void warnings.push(code))
    const app = appWith((app) => app.use(rateLimit({ limiter })).get('/', rateLimit({ limiter })))
    await request(app).get('/')
    expect(warnings).toEqual(['COUNTED_TWICE'])
  })
})

describe('decisionOf', () => {
  it('gives handlers the decision, for example to settle it', async () => {
    const limiter = ofNine()
    const app = appWith((app) => {
      app.use(rateLimit({ limiter, key: () => 'k' }), async (req, res) => {
        await decisionOf(req)!.settle(4)
        res.end()
      })
    })
    await request(app).get('/')
    expect((await limiter.peek('k')).remaining).toBe(5)
  })

  it('finds the decision of the limiter with the given name', async () => {
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

/** An application that answers 'served' on every path, behind what `prepare` mounts. */
function appWith(prepare: (app: Express) => void): Express {
  const app = express()
  prepare(app)
  app.use((_req, res) => void res.send('served'))
  return app
}

function ofNine(): Limiter {
  return createLimiter({ policies: [slidingLog({ limit: 9, window: '1m' })] })
}
