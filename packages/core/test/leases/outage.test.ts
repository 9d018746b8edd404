import { everyPolicy } from '@sluice/testing/internal'
import { FakeClock } from '@sluice/testing'
import { createLimiter, type Decision } from '../../src/index.js'
import { RemoteStore } from '@sluice/harness/stores'

/*
 * While the store is down, a limiter with leases decides in this process under the policies that leases are booked by.
 * Corrections must use those as well: under the declared list a window's buckets have other numbers, and the correction
 * emptied the state, so that 19 of a limit of 10 passed.
 */

const leased = everyPolicy({ limit: 10, window: 10_000 }).filter(([, { algorithm }]) => algorithm.leasing)

describe.each(leased)('%s with leases, while the store is down', (_, policy) => {
  const clock = new FakeClock()
  const store = new RemoteStore(clock.now)
  const limiter = createLimiter({ name: 'api', policies: [policy], store, leases: { ttl: '1s' } })
  afterAll(() => limiter.close())

  const admitted = async (key: string): Promise<Decision[]> => {
    const decisions: Decision[] = []
    for (let i = 0; i < 14; i++) decisions.push(await limiter.consume(key))
    return decisions.filter(({ allowed }) => allowed)
  }

  it('admits no more after a decision is settled at a higher cost', async () => {
    store.fail('STORE_OOM')
    const [first] = await admitted('higher')
    await first!.settle(2)
    expect(await admitted('higher')).toEqual([])
  })

  it('admits exactly what a decision gave back', async () => {
    store.fail('STORE_OOM')
    const [first] = await admitted('lower')
    await first!.settle(0)
    expect(await admitted('lower')).toHaveLength(1)
  })

  it('gives back a booked place that is held at its turn, and no other units', async () => {
    store.fail('STORE_OOM')
    jest.useFakeTimers()
    try {
      await admitted('held')
      const waiting = limiter.acquire('held', { maxWait: '20s' })
      await jest.advanceTimersByTimeAsync(0)
      const behind = limiter.acquire('held', { maxWait: '20s' })
      await jest.advanceTimersByTimeAsync(0)
      await limiter.hold('held', '11s').catch(() => {})
      clock.pass(10_500)
      await jest.advanceTimersByTimeAsync(10_500)
      expect(await admitted('held')).toEqual([])
      clock.pass(30_000)
      await jest.advanceTimersByTimeAsync(30_000)
      expect((await Promise.all([waiting, behind])).map(({ allowed }) => allowed)).toEqual([true, true])
    } finally {
      jest.useRealTimers()
    }
  })
})
