import { FakeClock } from '@sluice/testing'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type LimiterOptions,
  memoryStore,
  slidingLog,
} from '../../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

let clock: FakeClock
const limiterOf = (options: Omit<LimiterOptions, 'store' | 'name'>) =>
  createLimiter({ ...options, name: 'test', store: memoryStore({ clock: clock.now }) })

beforeEach(() => {
  clock = new FakeClock()
})

describe('a listener that throws', () => {
  it('changes no decision and causes one warning', async () => {
    const limiter = limiterOf({ policies: [gcra({ limit: 9, window: '1s' })] })
    const messages: string[] = []
    limiter.on('warning', ({ code, message }) => messages.push(`${code}: ${message}`))
    limiter.on('decision', () => {
      throw new Error('oops')
    })
    for (let i = 0; i < 3; i++) expect(await limiter.consume('k')).toMatchObject({ allowed: true })
    expect(messages).toEqual(["LISTENER_FAILED: a listener of 'decision' threw: Error: oops"])
  })

  it('does the same where it rejects', async () => {
    const limiter = limiterOf({ policies: [gcra({ limit: 9, window: '1s' })] })
    const messages: string[] = []
    limiter.on('warning', ({ code, message }) => messages.push(`${code}: ${message}`))
    const rejects: () => unknown = () => Promise.reject(new Error('oops'))
    limiter.on('decision', rejects)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
    await new Promise(setImmediate)
    expect(messages).toEqual(["LISTENER_FAILED: a listener of 'decision' threw: Error: oops"])
  })

  it('is reported to the process if it listens to warnings', async () => {
    const warned = expectWarnings(['LISTENER_FAILED'])
    const limiter = limiterOf({ policies: [gcra({ limit: 9, window: '1s' })] })
    limiter.on('warning', () => {
      throw new Error('oops')
    })
    limiter.warn('ANY', 'thing')
    expect(warned).toHaveLength(1)
  })
})

describe('a cost in the place of the options', () => {
  it.each(['consume', 'peek', 'acquire', 'charge', 'refund'] as const)('is refused by %s', async (method) => {
    const limiter = limiterOf({ policies: [gcra({ limit: 9, window: '1s' })] })
    const error = {
      name: 'InputError',
      code: 'INVALID_COST',
      message: 'the options of a call must be an object like { cost: 3 }, got 3',
    }
    await expect(limiter[method]('k', 3 as never)).rejects.toMatchObject(error)
    expect(await limiter.peek('k', { cost: 0 })).toMatchObject({ remaining: 9 })
  })
})

describe('a decision', () => {
  it('reports what remains, when it is full again, and which policy binds', async () => {
    const limiter = limiterOf({ policies: [slidingLog({ limit: 3, window: '1s' })] })
    expect(await limiter.consume('k', { cost: 2 })).toMatchObject({
      allowed: true,
      limit: 3,
      remaining: 1,
      retryAfterMs: 0,
      resetAfterMs: 1000,
      policy: '3-per-1s',
      reason: undefined,
      degraded: undefined,
      wouldDeny: undefined,
      waitMs: 0,
      limiter: 'test',
    })
  })

  it('has the key that was counted, as block and reset take it, however long', async () => {
    const limiter = limiterOf({ policies: [slidingLog({ limit: 1, window: '1s' })] })
    const long = 'k'.repeat(200)
    for (const key of ['k', long]) {
      expect((await limiter.consume(key)).key).toBe(key)
      const denied = await limiter.consume(key)
      await limiter.reset(denied.key)
      expect((await limiter.peek(denied.key)).remaining).toBe(1)
      expect((await limiter.acquire(key)).key).toBe(key)
    }
  })

  it('reports the longer wait of the limit or the block, and after a reset that of the block', async () => {
    const limiter = limiterOf({ policies: [slidingLog({ limit: 1, window: '90d' })] })
    await limiter.consume('k')
    await limiter.block('k', '1h')
    const full = await limiter.consume('k')
    expect([full.reason, full.retryAfterMs]).toEqual(['blocked', 90 * 86_400_000])
    await limiter.reset('k')
    await limiter.block('k', '1h')
    const blocked = await limiter.consume('k')
    expect([blocked.reason, blocked.retryAfterMs]).toEqual(['blocked', 3_600_000])
  })

  it('names the policy with least left when allowed', async () => {
    const policies = [slidingLog({ limit: 9, window: '1s' }), slidingLog({ limit: 2, window: '1m' })]
    const decision = await limiterOf({ policies }).consume('k')
    expect([decision.policy, decision.limit, decision.remaining]).toEqual(['2-per-1m', 2, 1])
  })

  it('names the first of two policies with equally much left', async () => {
    const policies = [slidingLog({ limit: 2, window: '1s' }), slidingLog({ limit: 2, window: '1m' })]
    expect((await limiterOf({ policies }).consume('k')).policy).toBe('2-per-1s')
  })

  it('names the policy to wait longest for when denied', async () => {
    const limiter = limiterOf({
      policies: [slidingLog({ limit: 1, window: '1s' }), slidingLog({ limit: 1, window: '1m' })],
    })
    await limiter.consume('k')
    const decision = await limiter.consume('k')
    expect([decision.policy, decision.reason, decision.retryAfterMs]).toEqual(['1-per-1m', 'limit', 60_000])
  })

  it('makes equal default names distinct by the algorithm, and by a number', async () => {
    const numbers = { limit: 9, window: '1s' } as const
    const burst = (units: number) => gcra({ ...numbers, burst: units })
    const given = slidingLog({ ...numbers, name: '9-per-1s-gcra' })
    const policies = [burst(3), fixedWindow(numbers), burst(9), given, slidingLog({ limit: 9, window: '2s' })]
    const decision = await limiterOf({ policies }).consume('k')
    expect(decision.policies.map(({ name }) => name)).toEqual([
      '9-per-1s-gcra-2',
      '9-per-1s-fixed-window',
      '9-per-1s-gcra-3',
      '9-per-1s-gcra',
      '9-per-2s',
    ])
  })

  it('lists every policy in declared order', async () => {
    const limiter = limiterOf({
      policies: [
        gcra({ limit: 10, window: '1s', burst: 20 }),
        slidingLog({ limit: 1, window: '1h', name: 'hourly' }),
      ],
    })
    await limiter.consume('k')
    expect((await limiter.consume('k')).policies).toEqual([
      {
        name: '10-per-1s',
        limit: 20,
        windowMs: 1000,
        remaining: 19,
        used: 1,
        retryAfterMs: 0,
        resetAfterMs: 100,
        rule: 'default',
      },
      {
        name: 'hourly',
        limit: 1,
        windowMs: 3_600_000,
        remaining: 0,
        used: 1,
        retryAfterMs: 3_600_000,
        resetAfterMs: 3_600_000,
        rule: 'default',
      },
    ])
  })

  it('rounds waits up to the millisecond', async () => {
    const limiter = limiterOf({ policies: [gcra({ limit: 3, window: '1s', burst: 1 })] })
    await limiter.consume('k')
    expect((await limiter.consume('k')).retryAfterMs).toBe(334)
  })

  it('comes at once from decide when the store is memory', () => {
    const decision = limiterOf({ policies: [slidingLog({ limit: 3, window: '1s' })] }).decide('k')
    expect(decision).not.toBeInstanceOf(Promise)
  })
})

describe('several policies', () => {
  it('charge none when one refuses', async () => {
    const limiter = limiterOf({
      policies: [fixedWindow({ limit: 5, window: '1m' }), fixedWindow({ limit: 1, window: '1s' })],
    })
    for (let i = 0; i < 4; i++) await limiter.consume('k')
    expect((await limiter.peek('k')).policies[0]!.remaining).toBe(4)
  })
})

describe('peek', () => {
  it('writes nothing', async () => {
    const limiter = limiterOf({ policies: [slidingLog({ limit: 1, window: '1s' })] })
    for (let i = 0; i < 3; i++) expect((await limiter.peek('k')).allowed).toBe(true)
    expect((await limiter.consume('k')).allowed).toBe(true)
    expect((await limiter.peek('k')).allowed).toBe(false)
  })

  it('gives a decision whose settle does nothing', async () => {
    const limiter = limiterOf({ policies: [slidingLog({ limit: 2, window: '1s' })] })
    await limiter.consume('k')
    await (await limiter.peek('k')).settle(0)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })
})

describe('tiers', () => {
  const tier = (limit: number) => [slidingLog({ limit, window: '1h', name: 'tier' })]

  it('keep recorded usage when the limit is raised or lowered', async () => {
    const limiter = limiterOf({ policies: tier(3) })
    for (let i = 0; i < 3; i++) await limiter.consume('k')
    expect((await limiter.consume('k', { policies: tier(10) })).remaining).toBe(6)
    expect((await limiter.consume('k', { policies: tier(2) })).allowed).toBe(false)
  })

  it('have a state of their own if they have another shape', async () => {
    const limiter = limiterOf({ policies: tier(1) })
    await limiter.consume('k')
    expect((await limiter.consume('k', { policies: [slidingLog({ limit: 1, window: '1d' })] })).allowed).toBe(
      true,
    )
  })
})

describe('shadow mode', () => {
  it('allows every call, reports what would be denied, and counts as if enforced', async () => {
    const limiter = limiterOf({ enforce: false, policies: [slidingLog({ limit: 1, window: '1s' })] })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, wouldDeny: false })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, wouldDeny: true, retryAfterMs: 0 })
    clock.pass(1000)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, wouldDeny: false })
  })
})
