import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { limited } from '@sluice/http'
import express from 'express'
import supertest from 'supertest'
import { assertAllowed, assertDenied, FakeClock } from '../src/index.js'

const LIMIT = { limit: 2, window: '1m' } as const

describe('assertions about decisions', () => {
  const clock = new FakeClock()
  const store = memoryStore({ clock: clock.now })
  const limiter = createLimiter({ name: 'api', policies: [slidingLog(LIMIT)], store })

  it('hold, and fail with what differs', async () => {
    const allowed = await limiter.consume('k')
    assertAllowed(allowed, { limit: 2, remaining: 1 })
    expect(() => assertAllowed(allowed, { remaining: 2 })).toThrow('the answer remaining is 1 and not 2')
    expect(() => assertDenied(allowed)).toThrow('the answer was allowed')
    const denied = await limiter.consume('k', { cost: 2 })
    assertDenied(denied, { retryAfterMs: 60_000, remaining: 1 })
    expect(() => assertDenied(denied, { retryAfterMs: 1 })).toThrow('retryAfterMs is 60000 and not 1')
    expect(() => assertAllowed(denied)).toThrow(expect.objectContaining({ name: 'AssertionError' }))
  })
})

describe('assertions about responses', () => {
  it('hold for fetch', async () => {
    const serve = limited(() => new Response('served'), { ...LIMIT, key: () => 'k' })
    const send = () => serve(new Request('http://localhost/'))
    assertAllowed(await send(), { limit: 2, remaining: 1 })
    assertAllowed(await send(), { remaining: 0 })
    const denied = await send()
    assertDenied(denied, { retryAfterMs: 59_001, remaining: 0 })
    expect(() => assertDenied(denied, { status: 503 })).toThrow('status is 429 and not 503')
  })

  it.each([403, 420, 503, 200])('hold for a denial that is answered with %i', (status) => {
    const answered = { status, headers: { 'Retry-After': '7' } }
    assertDenied(answered, { status })
    expect(() => assertDenied(answered)).toThrow(status === 503 ? 'status is 503 and not 429' : 'was allowed')
    expect(() => assertDenied({ status: 204, headers: {} }, { status })).toThrow('was allowed')
  })

  it('hold for supertest', async () => {
    const app = express().use(rateLimit(LIMIT))
    app.get('/', (_req, res) => res.end('served'))
    const server = app.listen(0, '127.0.0.1')
    const get = () => supertest(server).get('/')
    await get().expect((response) => assertAllowed(response, { remaining: 1 }))
    await get().expect((response) => assertAllowed(response, { remaining: 0 }))
    await get().expect((response) => assertDenied(response, { limit: 2 }))
    await expect(get().expect((response) => assertAllowed(response))).rejects.toThrow('was denied')
    server.close()
  })
})
