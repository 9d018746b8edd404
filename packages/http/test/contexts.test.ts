import { createLimiter, fixedWindow, type Limiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { AsyncLocalStorage } from 'node:async_hooks'
import { limitRequest, type LimitRequestOptions } from '../src/index.js'

/*
 * The replies to a batch of commands come in the context of one request. Each callback of a request runs in that of its own.
 */

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const als = new AsyncLocalStorage<string>()
const idOf = ({ url }: Request): string => new URL(url).pathname.slice(1)

it.each([
  ['one limit', false],
  ['several limits', true],
])('callbacks run in the context of their request, 100 at once: %s', async (_, areSeveral) => {
  const store = redisStore({ host: server.host, port: server.port })
  closing.push(() => store.close())
  const seen = new Map<string, number>()
  const strange: string[] = []
  const note = (name: string, request: Request): void => {
    seen.set(name, (seen.get(name) ?? 0) + 1)
    if (als.getStore() !== idOf(request)) strange.push(`${name} ${idOf(request)}`)
  }
  const noting =
    <T>(name: string, result: (request: Request) => T) =>
    (request: Request): T => {
      note(name, request)
      return result(request)
    }
  const limiters: Limiter[] = ['a', 'b'].map((name) => {
    const policies = [slidingLog({ limit: 2, window: '1h' })]
    const limiter = createLimiter({ name: `${name}${areSeveral}`, policies, store, deadline: '20s' })
    closing.unshift(() => limiter.close())
    return limiter
  })
  const hooks = {
    skip: noting('skip', async () => false),
    allow: noting('allow', () => false),
    deny: noting('deny', async () => false),
    onExceeded: noting('onExceeded', () => undefined),
    onDenied: noting('onDenied', () => new Response('no', { status: 429 })),
  }
  const own = {
    key: noting('key', async (request) => idOf(request).split('-')[0]!),
    cost: noting('cost', async () => 1),
    shouldCharge: noting('shouldCharge', () => true),
  }
  const policies = noting('policies', () => [fixedWindow({ limit: 2, window: '1h' })])
  const options = areSeveral
    ? { ...hooks, limits: limiters.map((limiter) => ({ ...own, limiter })) }
    : { ...hooks, ...own, policies, limiter: limiters[0]! }
  const limit = limitRequest(options as unknown as LimitRequestOptions & { key: () => string })
  await Promise.all(
    Array.from({ length: 900 }, (_, i) =>
      als.run(`k${i % 300}-${i}`, async () => {
        const { finish } = await limit(new Request(`http://localhost/k${i % 300}-${i}`))
        // A response may end in the context of another request, as where one stream serves many.
        als.run('another', finish)
      }),
    ),
  )
  await new Promise(setImmediate)
  expect(strange).toEqual([])
  expect(seen.get('onDenied')).toBe(300)
  expect(seen.get('onExceeded')).toBe(areSeveral ? 600 : 300)
  expect(seen.get('shouldCharge')).toBe(600)
})
