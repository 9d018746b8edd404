import { setImmediate } from 'node:timers/promises'
import { collect } from '@sluice/harness/figures'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { createLimiter, gcra, PolicyError } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'

jest.setTimeout(30_000) // a thousand scripts are composed

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const list = (seconds: number) => [gcra({ limit: 1, window: `${seconds}s` })]

function open(maxShapes: number) {
  const store = redisStore({ host: server.host, port: server.port }, { maxShapes, denialCache: false })
  const limiter = createLimiter({
    name: 'shapes',
    store,
    policies: list(1),
    deadline: '10s',
    onStoreError: 'throw',
  })
  const codes: string[] = []
  limiter.on('warning', ({ code }) => codes.push(code))
  return { store, limiter, codes }
}

describe('shapes in a Redis store', () => {
  it('take no more memory than the bound allows, also while their lists are held', async () => {
    const { store, limiter } = open(10)
    const lists = Array.from({ length: 1000 }, (_, i) => list(1000 + i))
    await limiter.consume('k', { policies: lists[0]! })
    const shapes = lists.map((policies) => new WeakRef(policies[0]!))
    for (let policies = lists.pop(); policies; policies = lists.pop())
      await limiter.consume('k', { policies })
    await setImmediate() // a WeakRef keeps what it names until the end of this turn
    collect()
    expect(shapes.filter((each) => each.deref()).length).toBeLessThanOrEqual(20)
    await store.close()
  })

  it('are reported once beyond the bound, and decided as before', async () => {
    const { store, limiter, codes } = open(10)
    const lists = Array.from({ length: 30 }, (_, i) => list(5000 + i))
    const first = await Promise.all(lists.map((policies) => limiter.consume('again', { policies })))
    for (const policies of lists) await limiter.peek('again', { policies })
    const second = await Promise.all(lists.map((policies) => limiter.consume('again', { policies })))
    expect(first.every(({ allowed }) => allowed)).toBe(true)
    expect(second.some(({ allowed }) => allowed)).toBe(false)
    expect(codes).toEqual(['SHAPES_FULL'])
    await store.close()
  })

  it('that were let go are closed with the store', async () => {
    const { store, limiter } = open(1)
    await limiter.consume('k', { policies: list(60) })
    await store.close()
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('need a bound that is a whole number', () => {
    expect(() => redisStore({ host: server.host, port: server.port }, { maxShapes: 0 })).toThrow(PolicyError)
  })
})
