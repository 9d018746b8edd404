import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { rateLimit, type RateLimitOptions } from '../src/index.js'
import { ask, closeApps, serve, statuses } from './served.js'

afterEach(closeApps)

const once = { limit: 1, window: '1m' } as const
const served = () => 'served'

type Done = (error: Error | null, tenant?: string) => void

/** A constraint of routes that reads a database, which fails for one path. */
const tenant = {
  name: 'tenant',
  storage() {
    const handlers = new Map<string, never>()
    return { get: (name: string) => handlers.get(name) ?? null, set: handlers.set.bind(handlers) as never }
  },
  deriveConstraint: ({ url }: { url?: string }, _context: unknown, done: Done) =>
    url === '/of/1' ? done(new Error('no database')) : done(null, 'a'),
}

describe('a malformed path', () => {
  it('is counted by the plugin', async () => {
    const app = await serve((app) => app.register(rateLimit, { ...once }))
    const first = await ask(app, '/%ff')
    expect([first.status, await first.json()]).toEqual([
      400,
      {
        error: 'Bad Request',
        code: 'FST_ERR_BAD_URL',
        message: "'/%ff' is not a valid url component",
        statusCode: 400,
      },
    ])
    expect(first.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(await statuses(app, '/%ff', '/%c0')).toEqual([429, 429])
  })

  it('is counted if a parameter is too long', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, { ...once })
      app.get('/of/:id', served)
    })
    expect(await statuses(app, `/of/${'x'.repeat(200)}`, `/of/${'x'.repeat(200)}`)).toEqual([414, 429])
  })

  it.each([
    ['cannot be decoded', '/%ff'],
    ['has a parameter that is too long', `/of/${'x'.repeat(200)}`],
    ['has a constraint that fails', '/of/1'],
  ])('is answered as without the plugin if it %s', async (_, path) => {
    const answerOf = async (plugin?: typeof rateLimit) => {
      const app = await serve(
        async (app) => {
          if (plugin) await app.register(plugin, { ...once })
          app.get('/of/:id', { constraints: { tenant: 'a' } }, served)
        },
        { routerOptions: { constraints: { tenant: tenant as never } } },
      )
      const { status, headers, text } = await ask(app, path).then(async (answer) => {
        return { status: answer.status, headers: answer.headers, text: await answer.text() }
      })
      return { limit: headers.get('x-ratelimit-limit'), status, text }
    }
    expect(await answerOf(rateLimit)).toEqual({ ...(await answerOf()), limit: '1' })
  })

  it('is counted for the caller behind a trusted proxy', async () => {
    const app = await serve((app) => app.register(rateLimit, { ...once }), { trustProxy: '127.0.0.1' })
    const from = async (address: string) =>
      (await ask(app, '/%ff', { headers: { 'x-forwarded-for': address } })).status
    expect([await from('192.0.2.1'), await from('192.0.2.2'), await from('192.0.2.1')]).toEqual([
      400, 400, 429,
    ])
  })

  it("is answered by the application's own frameworkErrors if it is allowed", async () => {
    const frameworkErrors = jest.fn(
      (_error: Error, _request: unknown, reply: any) => void reply.code(418).send(),
    )
    const app = await serve((app) => app.register(rateLimit, { ...once }), { frameworkErrors })
    expect(await statuses(app, '/%ff', '/%ff')).toEqual([418, 429])
    expect(frameworkErrors).toHaveBeenCalledTimes(1)
  })

  it.each<[string, (app: FastifyInstance) => unknown]>([
    ['has no limit', (app) => app.register(rateLimit)],
    [
      'is registered in a child context',
      (app) =>
        app.register(async (child) => {
          await child.register(rateLimit, { ...once })
        }),
    ],
  ])('is not counted if the plugin %s', async (_, prepare) => {
    const app = await serve(prepare)
    expect(await statuses(app, '/%ff', '/%ff')).toEqual([400, 400])
  })
})

describe('an error about a malformed path', () => {
  const failing: [string, RateLimitOptions][] = [
    ['key', { ...once, key: fail }],
    ['key, which throws a text', { ...once, key: failWithText }],
    ['an async key', { ...once, key: async () => fail() }],
    ['the limiter about its key', { ...once, key: () => 'k'.repeat(9000) }],
    ['skip', { ...once, skip: fail }],
    ['onDenied', { ...once, cost: () => 2, onDenied: fail }],
    ['Fastify about the result of onDenied', { ...once, cost: () => 2, onDenied: noText }],
  ]

  it.each(failing)('of %s is answered like one about a route', async (_, options) => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, options)
      app.get('/', served)
    })
    const [malformed, route] = [await ask(app, '/%ff'), await ask(app, '/')]
    expect([malformed.status, await malformed.text()]).toEqual([route.status, await route.text()])
    expect(malformed.status).not.toBe(200)
  })

  it.each(failing)("of %s goes to the application's error handler", async (_, options) => {
    const app = await serve((app) => {
      app.setErrorHandler((_error, _request, reply) => reply.code(503).send('handled'))
      return app.register(rateLimit, options)
    })
    const response = await ask(app, '/%ff')
    expect([response.status, await response.text()]).toEqual([503, 'handled'])
  })
})

function fail(): never {
  throw new Error('no database')
}

function failWithText(): never {
  throw 'no database'
}

/** An object where a text was announced. */
function noText(_request: FastifyRequest, reply: FastifyReply): unknown {
  reply.type('text/plain')
  return {}
}
