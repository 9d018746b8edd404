import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import type { Context, Middleware } from 'koa'
import { rateLimit } from '../src/index.js'
import { appOf, get, limit, serve } from './apps.js'

describe('an error that Koa answers', () => {
  it('keeps the headers of the limiters beside its own', async () => {
    const app = appOf(limit('all', 9), limit('few', 4), (ctx) => {
      ctx.throw(401, { headers: { 'WWW-Authenticate': 'Bearer' } })
    })
    const { status, headers } = await get(app)
    expect(status).toBe(401)
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '4', 'www-authenticate': 'Bearer' })
  })

  it.each<[string, (ctx: Context) => unknown]>([
    ['thrown', (ctx) => ctx.throw(429)],
    ['rejected', async (ctx) => ctx.throw(429)],
  ])('keeps the headers of the limiter if it is %s by onDenied', async (_, onDenied) => {
    const app = appOf(rateLimit({ limit: 1, window: '1m', cost: () => 2, onDenied }))
    const { status, text, headers } = await get(app)
    expect([status, text]).toEqual([429, 'Too Many Requests'])
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '1', 'cache-control': 'no-store' })
    const limiter = createLimiter({
      name: 'once',
      policies: [slidingLog({ limit: 1, window: '1m' })],
      store: memoryStore({ clock: () => 0 }),
    })
    const exhausted = appOf(rateLimit({ limiter, onDenied }), serve)
    await get(exhausted)
    expect((await get(exhausted)).headers['retry-after']).toBe('60')
  })

  it('keeps the headers of the limiter before the one that fails', async () => {
    const failing = rateLimit({ limit: 1, window: '1m', key: () => Promise.reject(new Error('no database')) })
    const { status, headers } = await get(appOf(limit('all', 9), failing, serve))
    expect([status, headers['x-ratelimit-limit']]).toEqual([500, '9'])
  })
})

describe('an error of onDenied that passes through', () => {
  it.each<[string, () => Error]>([
    ['is frozen', () => Object.freeze(new Error('no database'))],
    [
      'has only a getter of headers',
      () =>
        new (class extends Failure {
          get headers() {
            return undefined
          }
        })(),
    ],
    [
      'has a getter of headers that throws',
      () =>
        new (class extends Failure {
          get headers() {
            throw new Error('unread')
          }
        })(),
    ],
    [
      'has Headers of a response',
      () => Object.assign(new Failure(), { headers: new Headers({ 'x-request-id': '7' }) }),
    ],
  ])('stays as it is if it %s', async (_, make) => {
    const error = make()
    const before = Object.getOwnPropertyDescriptors(error)
    const caught = await throughLimit(error)
    expect(caught).toBe(error)
    expect(Object.getOwnPropertyDescriptors(error)).toEqual(before)
  })

  it.each<[string, object]>([
    ['no headers', {}],
    ['null in place of headers', { headers: null }],
    ['headers without a prototype', { headers: Object.create(null) }],
  ])('gets the headers of the limiter if it has %s', async (_, properties) => {
    const caught = await throughLimit(Object.assign(new Failure(), properties))
    expect(caught).toMatchObject({ headers: { 'X-RateLimit-Limit': '1' } })
  })

  it('gets no headers if it is of the application, which Koa answers with those of the limiter', async () => {
    const error = Object.assign(new Failure(), { status: 400 })
    const { status, headers } = await get(appOf(limit('api', 9), () => Promise.reject(error)))
    expect([status, headers['x-ratelimit-limit']]).toEqual([400, '9'])
    expect(error).not.toHaveProperty('headers')
  })
})

class Failure extends Error {}

/** What middleware around the limiter catches if `onDenied` throws `error`. */
async function throughLimit(error: Error): Promise<unknown> {
  const onDenied = (): never => {
    throw error
  }
  let caught: unknown
  const around: Middleware = (_ctx, next) => next().catch((thrown: unknown) => void (caught = thrown))
  await get(appOf(around, rateLimit({ limit: 1, window: '1m', cost: () => 2, onDenied })))
  return caught
}
