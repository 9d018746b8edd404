import { FakeClock } from '@sluice/testing'
import { inspect } from 'node:util'
import {
  createLimiter,
  type Decision,
  type DenialReason,
  gcra,
  isDecision,
  memoryStore,
  type Policy,
  slidingLog,
} from '../../src/index.js'

describe('a decision', () => {
  async function decided(): Promise<readonly [Decision, Decision]> {
    const limiter = createLimiter({
      name: 'orders',
      policies: [slidingLog({ limit: 1, window: '1m' }), gcra({ limit: 600, window: '1m', burst: 10 })],
      store: memoryStore({ clock: () => 0 }),
    })
    return [await limiter.consume('user:1'), await limiter.consume('user:1')]
  }

  const RECORD = {
    allowed: false,
    limit: 1,
    remaining: 0,
    retryAfterMs: 60_000,
    resetAfterMs: 60_000,
    policy: '1-per-1m',
    reason: 'limit',
    degraded: undefined,
    exempt: undefined,
    wouldDeny: undefined,
    charged: false,
    waitMs: 0,
    lateMs: 0,
    limiter: 'orders',
    key: 'user:1',
    policies: [
      {
        name: '1-per-1m',
        limit: 1,
        windowMs: 60_000,
        remaining: 0,
        used: 1,
        retryAfterMs: 60_000,
        resetAfterMs: 60_000,
        rule: 'default',
      },
      {
        name: '600-per-1m',
        limit: 10,
        windowMs: 60_000,
        remaining: 9,
        used: 1,
        retryAfterMs: 0,
        resetAfterMs: 100,
        rule: 'default',
      },
    ],
  }

  it('has all fields in toJSON', async () => {
    const [, denied] = await decided()
    expect(denied.toJSON()).toStrictEqual(RECORD)
    expect(JSON.parse(JSON.stringify({ denied }))).toEqual({ denied: RECORD })
  })

  it('has a getter for every field of toJSON', async () => {
    const [, denied] = await decided()
    for (const [field, value] of Object.entries(denied.toJSON()))
      expect(denied[field as keyof Decision]).toEqual(value)
  })

  it('shows all fields when it is logged', async () => {
    const [, denied] = await decided()
    expect(inspect(denied)).toBe(`Decision ${inspect(RECORD)}`)
    expect(inspect({ denied }, { depth: 0 })).toBe('{ denied: [Decision] }')
  })

  it('is copied and compared by toJSON, because most fields are computed when they are read', async () => {
    const [allowed, denied] = await decided()
    expect(Object.assign({}, denied)).toEqual({
      allowed: false,
      remaining: 0,
      policy: '1-per-1m',
      reason: 'limit',
    })
    expect({ ...denied.toJSON() }).toEqual(RECORD)
    expect(allowed.toJSON()).not.toEqual(denied.toJSON())
    expect(allowed).not.toEqual(denied)
  })
})

describe('what a decision says was used', () => {
  let clock: FakeClock
  beforeEach(() => void (clock = new FakeClock()))
  const open = (policies: readonly Policy[]) =>
    createLimiter({ name: 'api', policies, store: memoryStore({ clock: clock.now }) })
  const used = ({ policies }: Decision) => policies.map((policy) => policy.used)

  it('counts units in part as whole ones, as they drain', async () => {
    const limiter = open([gcra({ limit: 60, window: '1m', burst: 10 })])
    expect(used(await limiter.consume('k', { cost: 4 }))).toEqual([4])
    clock.pass(1500)
    expect(used(await limiter.peek('k'))).toEqual([3])
  })

  it.each<readonly [string, (limit: number) => Policy]>([
    ['gcra', (limit) => gcra({ limit, window: '1m' })],
    ['a sliding log', (limit) => slidingLog({ limit, window: '1m' })],
  ])('exceeds the limit where more was charged than fits: %s', async (_, policy) => {
    const limiter = open([policy(5)])
    await limiter.charge('k', { cost: 7 })
    for (const decision of [
      await limiter.consume('k'),
      await limiter.consume('k', { cost: 0 }),
      await limiter.consume('k', { cost: 6 }),
      await limiter.peek('k'),
      await limiter.peek('k', { policies: [policy(1)] }),
    ])
      expect([decision.remaining, ...used(decision)]).toEqual([0, 7])
  })

  it('counts at the instant of the last place that is booked', async () => {
    const limiter = open([slidingLog({ limit: 2, window: '10s' })])
    await limiter.consume('k')
    clock.pass(5000)
    await limiter.consume('k')
    const [waiting, end] = [new AbortController(), { maxWait: '1m' } as const]
    const turn = limiter.acquire('k', { ...end, signal: waiting.signal })
    expect(used(await limiter.peek('k'))).toEqual([2])
    waiting.abort()
    await expect(turn).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('the type of a decision', () => {
  const limiter = createLimiter({ policies: [gcra({ limit: 1, window: '1m' })] })

  it('has a reason if it is not allowed', () => {
    const why = (decision: Decision): string => {
      // @ts-expect-error an allowed one may have none
      const reason: string = decision.reason
      return decision.allowed ? `allowed, ${reason}` : (decision.reason satisfies DenialReason)
    }
    expect([why(limiter.decide('k') as Decision), why(limiter.decide('k') as Decision)]).toEqual([
      'allowed, undefined',
      'limit',
    ])
  })

  it('is recognised, also that of another copy of the package', async () => {
    const decision = await limiter.consume('k')
    expect(isDecision(decision)).toBe(true)
    expect(isDecision({ [Symbol.for('sluice.policies')]: [] })).toBe(true)
    expect([decision.toJSON(), null, 'denied'].map(isDecision)).toEqual([false, false, false])
  })
})
