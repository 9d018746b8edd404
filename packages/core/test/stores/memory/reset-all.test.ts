import {
  createLimiter,
  createSemaphore,
  fixedWindow,
  gcra,
  memoryStore,
  slidingLog,
} from '../../../src/index.js'
import { FakeClock } from '@sluice/testing'

describe('resetAll of a memory store', () => {
  const clock = new FakeClock()
  const store = memoryStore({ clock: clock.now })
  const hourly = createLimiter({ name: 'hourly', store, policies: [slidingLog({ limit: 3, window: '1h' })] })
  const burst = createLimiter({
    name: 'burst',
    store,
    policies: [gcra({ limit: 1, window: '1m' }), fixedWindow({ limit: 2, window: '1d' })],
  })
  beforeEach(() => store.resetAll())

  it('forgets what every key of every limiter consumed, its block and its hold', async () => {
    for (let i = 0; i < 5000; i++) await hourly.consume(`k${i}`, { cost: 3 })
    await hourly.reset('k4999')
    await burst.consume('k1')
    await burst.block('k2', '1h')
    await burst.hold('k3', '1h')
    expect(store.size).toBe(5002)
    store.resetAll()
    expect(store.size).toBe(0)
    expect(await hourly.consume('k7', { cost: 3 })).toMatchObject({ allowed: true })
    for (const key of ['k1', 'k2', 'k3'])
      expect(await burst.consume(key)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('does nothing in an empty store', () => {
    store.resetAll()
    expect(store.size).toBe(0)
  })

  it('gives nothing back for charges of before', async () => {
    const decision = await hourly.consume('k', { cost: 2 })
    store.resetAll()
    clock.pass(1000)
    await hourly.consume('k', { cost: 3 })
    expect(await decision.settle(0)).toBe(0)
    expect(await hourly.peek('k')).toMatchObject({ remaining: 0 })
  })

  it('leaves the permits of semaphores', async () => {
    const semaphore = createSemaphore({ name: 'jobs', limit: 1, store })
    const permit = await semaphore.acquire('k')
    store.resetAll()
    expect(await semaphore.acquire('k', { maxWait: 0 })).toMatchObject({ allowed: false })
    await permit.release()
  })
})
