import { memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { type Outcome, ours, work } from '../payments/worker.js'
import { Provider } from './provider.js'

const WORKERS = 4

let redis: RedisServer
let provider: Provider
let stores: readonly Store[] = []

beforeAll(async () => {
  redis = await startRedis()
})

afterEach(async () => {
  provider.close()
  for (const store of new Set(stores)) await store.close()
})

afterAll(() => redis.stop())

/** A store that all workers share, or one for each of them, as each process has its own. */
const STORES = {
  'in one process': () => Array<Store>(WORKERS).fill(memoryStore()),
  'each with a connection of its own to Redis': () =>
    Array.from({ length: WORKERS }, () => redisStore({ host: redis.host, port: redis.port })),
}

/** The workers make so many payments, and one of them a customer's every half second; at half of them `halfway` is called. */
async function pay(payments: number, signal: AbortSignal, halfway: () => void): Promise<readonly Outcome[]> {
  const origin = await provider.start()
  const outcomes: Outcome[] = []
  const report = (outcome: Outcome): void => {
    outcomes.push(outcome)
    if (outcomes.length === payments / 2) halfway()
  }
  await Promise.all(
    stores.map((store, worker) => {
      const job = { worker, origin, payments: payments / WORKERS, customerEachMs: worker === 0 ? 500 : 0 }
      return work(job, store, report, signal)
    }),
  )
  return outcomes
}

describe.each(Object.entries(STORES))('workers %s', (_, open) => {
  beforeEach(() => {
    provider = new Provider()
    stores = open()
  })

  test('make every payment once, under the limits of a provider that is out of order for a while', async () => {
    const outcomes = await pay(40, new AbortController().signal, () => provider.breakDown())
    const made = (who: string) => outcomes.filter((each) => each.who === who && 'tookMs' in each).length
    expect(made('batch')).toBe(40)
    expect(made('customer')).toBeGreaterThan(0)
    expect([...provider.paid.values()]).toEqual(Array(outcomes.length).fill(1))
    expect(provider.mostAtOnce).toBeLessThanOrEqual(ours.atOnce)
    expect(provider.tooMany).toBe(0)
    expect(provider.outOfOrder).toBeGreaterThan(0)
    expect(provider.outOfOrder).toBeLessThan(20) // the pause was obeyed
  }, 60_000)

  test('stop where they are asked to, and have made no payment twice', async () => {
    const stop = new AbortController()
    const outcomes = await pay(80, stop.signal, () => stop.abort())
    expect(outcomes.length).toBeLessThan(80)
    expect(outcomes.filter((each) => 'failed' in each)).toEqual([])
    expect([...provider.paid.values()].filter((times) => times > 1)).toEqual([])
  }, 60_000)
})
