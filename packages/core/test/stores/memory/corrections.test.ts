import { FakeClock } from '@sluice/testing'
import { createLimiter, gcra, type Limiter, memoryStore, slidingLog } from '../../../src/index.js'

let clock: FakeClock
let limiter: Limiter
const remaining = async (key = 'k'): Promise<number> => (await limiter.peek(key)).remaining

beforeEach(() => {
  clock = new FakeClock()
  const store = memoryStore({ clock: clock.now })
  limiter = createLimiter({ name: 'test', store, policies: [slidingLog({ limit: 10, window: '1s' })] })
})

describe('refund', () => {
  it('gives units back', async () => {
    await limiter.consume('k', { cost: 4 })
    await limiter.refund('k', { cost: 3 })
    expect(await remaining()).toBe(9)
  })

  it('never gives more than was consumed', async () => {
    await limiter.consume('k', { cost: 4 })
    await limiter.refund('k', { cost: 100 })
    expect(await remaining()).toBe(10)
  })

  it('of a key that consumed nothing gives nothing (a reward on a fresh key bought calls elsewhere)', async () => {
    await limiter.refund('k', { cost: 5 })
    expect(await remaining()).toBe(10)
  })
})

describe('charge', () => {
  it('takes units whether they fit or not', async () => {
    await limiter.charge('k', { cost: 4 })
    expect(await remaining()).toBe(6)
    await limiter.charge('k', { cost: 8 })
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 1000 })
  })

  it('takes nothing at a cost of 0', async () => {
    await limiter.charge('k', { cost: 0 })
    expect(await remaining()).toBe(10)
  })
})

describe('settle', () => {
  it('charges the difference when the call cost more', async () => {
    await (await limiter.consume('k', { cost: 2 })).settle(7)
    expect(await remaining()).toBe(3)
  })

  it('gives the difference back when the call cost less', async () => {
    await (await limiter.consume('k', { cost: 7 })).settle(2)
    expect(await remaining()).toBe(8)
  })

  it('is never refused, and what is beyond the limit has to be waited for', async () => {
    await (await limiter.consume('k', { cost: 1 })).settle(15)
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 1000 })
  })

  it('saturates at twice the capacity', async () => {
    const store = memoryStore({ clock: clock.now })
    limiter = createLimiter({ name: 'debt', store, policies: [gcra({ limit: 10, window: '1s' })] })
    await (await limiter.consume('k', { cost: 1 })).settle(2 ** 31)
    expect((await limiter.peek('k')).resetAfterMs).toBe(2000)
  })

  it('gives back what is among the newest 1,000 entries of a log, and leaves what others made', async () => {
    const store = memoryStore({ clock: clock.now })
    limiter = createLimiter({ name: 'log', store, policies: [slidingLog({ limit: 2000, window: '1s' })] })
    await limiter.consume('k', { cost: 200 })
    clock.pass(1)
    const decision = await limiter.consume('k', { cost: 600 })
    clock.pass(1)
    await limiter.consume('k', { cost: 600 })
    await expect(decision.settle(0)).resolves.toBe(-400)
    expect(await remaining()).toBe(1000)
  })

  it('is refused the second time', async () => {
    const decision = await limiter.consume('k')
    await decision.settle(1)
    await expect(decision.settle(1)).rejects.toMatchObject({ code: 'ALREADY_SETTLED' })
  })

  it('does nothing on a denied decision', async () => {
    await limiter.consume('k', { cost: 10 })
    await (await limiter.consume('k', { cost: 5 })).settle(0)
    expect(await remaining()).toBe(0)
  })

  it('goes by the policies of its own call', async () => {
    const decision = await limiter.consume('k', { policies: [slidingLog({ limit: 5, window: '1h' })] })
    await decision.settle(5)
    expect(await remaining()).toBe(10)
  })
})

describe('reset', () => {
  it('forgets what was consumed, of this key alone', async () => {
    await limiter.consume('bob', { cost: 10 })
    await limiter.consume('bobby', { cost: 10 })
    await limiter.reset('bob')
    expect([await remaining('bob'), await remaining('bobby')]).toEqual([10, 0])
  })

  it('ends a block and a hold', async () => {
    await limiter.block('k', '1d')
    await limiter.hold('k', '1d')
    await limiter.reset('k')
    expect((await limiter.consume('k')).allowed).toBe(true)
  })
})

describe('block', () => {
  it('denies until then, also what costs nothing, and allows exactly then', async () => {
    await limiter.block('k', '10s')
    expect(await limiter.consume('k')).toMatchObject({
      allowed: false,
      reason: 'blocked',
      retryAfterMs: 10_000,
    })
    expect(await limiter.consume('k', { cost: 0 })).toMatchObject({ allowed: false, remaining: 0 })
    clock.at(10_000)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  it('ends as the latest call says', async () => {
    await limiter.block('k', '10m')
    await limiter.block('k', '1s')
    expect((await limiter.peek('k')).retryAfterMs).toBe(1000)
  })
})

describe('hold', () => {
  it('denies consume until then', async () => {
    await limiter.hold('k', '5s')
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, reason: 'held', retryAfterMs: 5000 })
  })

  it('never shortens one that is longer', async () => {
    await limiter.hold('k', '5s')
    await limiter.hold('k', '1s')
    expect((await limiter.peek('k')).retryAfterMs).toBe(5000)
  })

  it('gives way to a block in the reason', async () => {
    await limiter.hold('k', '5s')
    await limiter.block('k', '1s')
    expect(await limiter.peek('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 5000 })
  })
})
