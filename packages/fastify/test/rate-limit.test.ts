import { createLimiter, slidingLog } from '@sluice/core'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { decisionOf, rateLimit, rateLimitHook, type RateLimitOptions } from '../src/index.js'
import { ask, closeApps, serve, statuses } from './served.js'
import { expectWarnings } from '@sluice/harness/warnings'

const once: RateLimitOptions = { limit: 1, window: '1m' }
const served = () => 'served'

afterEach(closeApps)

describe('a request that is injected', () => {
  it('waits for an onDenied that answers later, and has returned a timer', async () => {
    const onDenied: RateLimitOptions['onDenied'] = (_request, reply) =>
      setTimeout(() => void reply.send('later'), 5)
    const app = await serve(async (app) => {
      await app.register(rateLimit, { limit: 1, window: '1m', cost: () => 2, onDenied })
      app.get('/', () => 'served')
    })
    const response = await ask(app, '/')
    expect([response.status, await response.text()]).toEqual([429, 'later'])
  })

  it('is served, whatever it says that its address is', async () => {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 9, window: '1m' })] })
    const seen: string[] = []
    limiter.on('decision', ({ key }) => void seen.push(key))
    limiter.on('warning', ({ code }) => void seen.push(code))
    const app = fastify()
    await app.register(rateLimit, { limiter })
    app.all('/', served)
    for (const method of ['GET', 'POST'] as const) {
      expect((await app.inject({ method, url: '/', remoteAddress: 'none', payload: {} })).statusCode).toBe(
        200,
      )
    }
    expect((await app.inject('/')).statusCode).toBe(200)
    expect(seen).toEqual(['ADDRESS_UNKNOWN', 'ip:unknown', 'ip:unknown', 'ip:127.0.0.1'])
    await app.close()
  })
})

describe('the plugin', () => {
  it('refuses its options at start, also where nobody awaits it', async () => {
    const app = fastify()
    void app.register(rateLimit, { limit: 1.5, window: '1m' })
    app.get('/', served)
    await expect(app.listen({ port: 0, host: '127.0.0.1' })).rejects.toThrow('limit must be a whole number')
    await app.close()
  })

  it('limits every route of its context, and unknown paths', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, { limit: 2, window: '1m' })
      app.get('/a', served).get('/b', served)
    })
    expect(await statuses(app, '/a', '/b', '/a')).toEqual([200, 200, 429])
    expect(await statuses(app, '/none')).toEqual([429])
  })

  it('limits routes that were added before it was loaded', async () => {
    const app = await serve((app) => {
      void app.register(rateLimit, once)
      app.get('/a', served).get('/b', { config: { rateLimit: { ...once } } }, served)
    })
    expect(await statuses(app, '/a', '/a', '/b', '/b')).toEqual([200, 429, 200, 429])
  })

  it('in a child context limits only the routes of that context', async () => {
    const app = await serve((app) => {
      app.get('/', served)
      app.register(async (child) => {
        await child.register(rateLimit, once)
        child.get('/child', served)
      })
    })
    expect(await statuses(app, '/child', '/child', '/', '/')).toEqual([200, 429, 200, 200])
  })

  it("in a context and its child counts the child's requests in both", async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, { limit: 3, window: '1m', name: 'all', headers: 'ietf' })
      app.get('/', served)
      app.register(async (child) => {
        await child.register(rateLimit, { limit: 2, window: '1m', name: 'few', headers: 'ietf' })
        child.get('/child', served)
      })
    })
    const { headers } = await ask(app, '/child')
    expect(headers.get('ratelimit-policy')).toBe('"all";q=3;w=60, "few";q=2;w=60')
    expect(await statuses(app, '/child', '/child', '/')).toEqual([200, 429, 429])
  })

  it('answers before the body is read', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, once)
      app.post('/', served)
    })
    const broken = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' }
    expect((await ask(app, '/', broken)).status).toBe(400)
    expect((await ask(app, '/', broken)).status).toBe(429)
  })

  it('runs the hooks of responses on denials', async () => {
    const app = await serve(async (app) => {
      app.addHook('onSend', async (_request, reply) => void reply.header('x-sent', 'yes'))
      await app.register(rateLimit, { ...once, cost: () => 2 })
    })
    const { status, headers } = await ask(app, '/')
    expect([status, headers.get('x-sent')]).toEqual([429, 'yes'])
  })

  it.each([
    ['the plugin', (app: FastifyInstance) => app.register(rateLimit, { limit: 1 } as RateLimitOptions)],
    [
      'a route',
      async (app: FastifyInstance) => {
        await app.register(rateLimit)
        app.get('/', { config: { rateLimit: { limit: 1 } } }, served)
      },
    ],
    ['a hook', async () => rateLimitHook({ limit: 1 })],
  ])('refuses invalid options of %s while the application is set up', async (_, prepare) => {
    const started = serve(prepare)
    await expect(started).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('config.rateLimit', () => {
  it('limits a route instead of the plugin', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, once)
      app.get('/', served).get('/own', { config: { rateLimit: { limit: 2, window: '1m' } } }, served)
    })
    expect(await statuses(app, '/own', '/own', '/own', '/', '/')).toEqual([200, 200, 429, 200, 429])
  })

  it('as false leaves a route without limit and headers', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, once)
      app.get('/free', { config: { rateLimit: false } }, served)
    })
    expect(await statuses(app, '/free', '/free')).toEqual([200, 200])
    expect((await ask(app, '/free')).headers.has('x-ratelimit-limit')).toBe(false)
  })

  it('is the only limit if the plugin has no options', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit)
      app.get('/', served).get('/own', { config: { rateLimit: once } }, served)
    })
    expect(await statuses(app, '/', '/', '/own', '/own')).toEqual([200, 200, 200, 429])
  })

  it('counts a route once if the plugin is registered twice', async () => {
    const cost = jest.fn(() => 1)
    const app = await serve(async (app) => {
      await app.register(rateLimit)
      app.register(async (child) => {
        await child.register(rateLimit, once)
        child.get('/', { config: { rateLimit: { limit: 2, window: '1m', cost } } }, served)
      })
    })
    expect(await statuses(app, '/')).toEqual([200])
    expect(cost).toHaveBeenCalledTimes(1)
  })

  it('counts GET and its HEAD together', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit)
      app.get('/', { config: { rateLimit: once } }, served)
    })
    expect((await ask(app, '/', { method: 'HEAD' })).status).toBe(200)
    expect(await statuses(app, '/')).toEqual([429])
  })
})

describe('a group of routes shares one limiter', () => {
  it.each<[string, () => (app: FastifyInstance, path: string) => unknown]>([
    [
      'by one options object',
      () => {
        const config = { rateLimit: { ...once } }
        return (app, path) => app.get(path, { config }, served)
      },
    ],
    [
      'by one hook',
      () => {
        const onRequest = rateLimitHook(once)
        return (app, path) => app.get(path, { onRequest }, served)
      },
    ],
    [
      'by a limiter in options of their own',
      () => {
        const limiter = createLimiter({ policies: [slidingLog({ limit: 1, window: '1m' })] })
        return (app, path) => app.get(path, { config: { rateLimit: { limiter } } }, served)
      },
    ],
  ])('%s, without other routes', async (_, group) => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, { limit: 1, window: '1m' })
      const add = group()
      app.get('/other', { config: { rateLimit: { ...once } } }, served)
      add(app, '/one')
      add(app, '/two')
    })
    expect(await statuses(app, '/two', '/one', '/other')).toEqual([200, 429, 200])
  })

  it('but not with another application', async () => {
    const prepare = async (app: FastifyInstance) => {
      await app.register(rateLimit)
      app.get('/', { config: { rateLimit: once } }, served)
    }
    const [one, other] = [await serve(prepare), await serve(prepare)]
    expect([...(await statuses(one, '/')), ...(await statuses(other, '/'))]).toEqual([200, 200])
  })
})

describe('rateLimitHook', () => {
  it.each(['preValidation', 'preHandler'] as const)('counts by the body as a %s hook', async (hook) => {
    const key = (request: FastifyRequest) => (request.body as { team: string }).team
    const app = await serve((app) => app.post('/', { [hook]: rateLimitHook({ ...once, key }) }, served))
    const status = async (team: string) => {
      const headers = { 'content-type': 'application/json' }
      return (await ask(app, '/', { method: 'POST', headers, body: JSON.stringify({ team }) })).status
    }
    expect([await status('a'), await status('a'), await status('b')]).toEqual([200, 429, 200])
  })

  it('adds to the limit of the plugin', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, { limit: 9, window: '1m', name: 'all' })
      const onRequest = ['few', 'some'].map((name, i) => rateLimitHook({ limit: 4 + i, window: '1m', name }))
      app.get('/', { onRequest }, served)
    })
    expect((await ask(app, '/')).headers.get('x-ratelimit-limit')).toBe('4')
  })
})

describe('the decision', () => {
  it('is on the request: the latest, or that of the limiter with the given name', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, { limit: 9, window: '1m', name: 'first' })
      const onRequest = rateLimitHook({ limit: 9, window: '1m', name: 'second' })
      app.get('/', { onRequest }, (request) =>
        [request.rateLimit, decisionOf(request, 'first'), decisionOf(request, 'none')].map(
          (decision) => decision?.limiter ?? 'none',
        ),
      )
      app.get('/free', { config: { rateLimit: false } }, (request) => ({ seen: request.rateLimit ?? 'none' }))
    })
    expect(await (await ask(app, '/')).json()).toEqual(['second', 'first', 'none'])
    expect(await (await ask(app, '/free')).json()).toEqual({ seen: 'none' })
  })

  it('can be settled', async () => {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 99, window: '1m' })] })
    const app = await serve(async (app) => {
      await app.register(rateLimit, { limiter, key: () => 'k' })
      app.get('/', async (request) => {
        await request.rateLimit!.settle(40)
        return 'served'
      })
    })
    await ask(app, '/')
    expect((await limiter.peek('k')).remaining).toBe(59)
  })
})

describe('onDenied', () => {
  it.each<[string, (request: FastifyRequest, reply: FastifyReply) => unknown]>([
    ['sends', (_request, reply) => void reply.send({ slow: 'down' })],
    ['sends, and returns the reply', (_request, reply) => reply.send({ slow: 'down' })],
    ['returns', () => ({ slow: 'down' })],
    ['resolves to', async () => ({ slow: 'down' })],
    ['sends later, and resolves to the reply', async (_request, reply) => reply.send({ slow: 'down' })],
  ])('answers with what it %s', async (_, onDenied) => {
    const handler = jest.fn(served)
    const app = await serve(async (app) => {
      await app.register(rateLimit, { ...once, cost: () => 2, onDenied })
      app.get('/', handler)
    })
    const response = await ask(app, '/')
    expect([response.status, await response.json()]).toEqual([429, { slow: 'down' }])
    expect(handler).not.toHaveBeenCalled()
  })

  it.each<[string, (request: FastifyRequest, reply: FastifyReply) => unknown]>([
    ['returns', (_request, reply) => noText(reply)],
    ['resolves to', async (_request, reply) => noText(reply)],
  ])('passes to the error handler what it %s and cannot be sent', async (_, onDenied) => {
    const app = await serve(async (app) => {
      app.setErrorHandler((error, _request, reply) => reply.code(500).send({ handled: String(error) }))
      await app.register(rateLimit, { ...once, cost: () => 2, onDenied })
    })
    const response = await ask(app, '/')
    expect([response.status, await response.json()]).toEqual([
      500,
      { handled: expect.stringContaining('INVALID_PAYLOAD_TYPE') },
    ])
  })
})

describe('a limiter that is made', () => {
  type Adapter = typeof import('../src/index.js')

  it.each<[string, string[], (app: FastifyInstance, adapter: Adapter) => unknown]>([
    [
      'in a handler is reported once',
      ['LIMITER_IN_HANDLER'],
      (app, { rateLimitHook }) => {
        app.get('/', (request, reply) => rateLimitHook(once)(request, reply, () => void reply.send('served')))
      },
    ],
    [
      'for a route that was added before the plugin was loaded is not reported',
      [],
      (app, { rateLimit }) => {
        void app.register(rateLimit)
        app.get('/', { config: { rateLimit: { limit: 9, window: '1m' } } }, served)
      },
    ],
  ])('%s', async (_, codes, prepare) => {
    const warned = expectWarnings(codes)
    // It is reported once for the process, which this makes another one of.
    let adapter!: Adapter
    jest.isolateModules(() => (adapter = require('../src/index.js') as Adapter))
    const app = await serve((app) => void prepare(app, adapter))
    expect(await statuses(app, '/', '/')).toEqual([200, 200])
    expect(warned.map(({ code }) => code)).toEqual(codes)
  })
})

/** An object where a text was announced. */
function noText(reply: FastifyReply): unknown {
  reply.type('text/plain')
  return {}
}

describe('the plugin, where it is', () => {
  const line = /Write: app\.register\(rateLimit, \{ limit: 100, window: '1m' \}\)$/

  it('called with the options, is refused at the start, with the line to write', async () => {
    const app = fastify()
    const called = rateLimit as never as (options: object) => never
    app.register(called({ limit: 1, window: '1m' }))
    await expect(app.ready()).rejects.toThrow(line)
  })

  it.each(['onRequest', 'preHandler'] as const)('given as the hook %s, is refused with it', async (hook) => {
    const app = fastify()
    app.addHook(hook as 'onRequest', rateLimit as never)
    app.get('/', () => 'hello')
    const { json } = await app.inject('/')
    expect(json<Error>().message).toMatch(line)
  })
})
