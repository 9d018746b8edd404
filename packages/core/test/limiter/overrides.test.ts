import { FakeClock } from '@sluice/testing'
import {
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  memoryStore,
  type LimiterOptions,
  slidingLog,
  tokenBucket,
} from '../../src/index.js'

const WHO = { reason: 'a campaign', by: 'ops' }

/** A limiter of `policies` on a store whose clock the test moves. */
function made(options: Partial<LimiterOptions> = {}) {
  const clock = new FakeClock()
  const store = memoryStore({ clock: clock.now })
  const limiter = createLimiter({ name: 'api', policies: [fixedWindow({ limit: 2, window: '1h' })], store, ...options })
  return { clock, store, limiter }
}

describe('limiter.override', () => {
  it('lets a denied key pass at the next call, measured against the new limit', async () => {
    const { limiter } = made()
    await limiter.consume('a', { cost: 2 })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false })
    await limiter.override('a', { limit: 5, until: '1h', ...WHO })
    const decision = await limiter.consume('a')
    expect(decision).toMatchObject({ allowed: true, limit: 5, remaining: 2 })
    expect(decision.policies).toMatchObject([{ rule: 'override', limit: 5, used: 3 }])
    expect(await limiter.consume('b', { cost: 3 })).toMatchObject({ allowed: false, limit: 2 })
  })

  it('ends at its end, to the microsecond, and at removeOverride', async () => {
    const { limiter, clock } = made()
    await limiter.override('a', { limit: 5, until: '1m', ...WHO })
    clock.pass(59_999)
    expect((await limiter.peek('a')).limit).toBe(5)
    clock.pass(1)
    expect((await limiter.peek('a')).limit).toBe(2)
    await limiter.override('a', { factor: 10, until: '1m', ...WHO })
    expect((await limiter.peek('a')).limit).toBe(20)
    await limiter.removeOverride('a')
    expect((await limiter.peek('a')).limit).toBe(2)
  })
})
