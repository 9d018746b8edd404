import * as fc from 'fast-check'
import { createLimiter, type Decision, gcra, type Limiter, type Policy } from '../../src/index.js'
import { findShapes, type Shape } from '@sluice/testing/internal'
import { RemoteStore } from '@sluice/harness/stores'

/*
 * Callers who vary the cost, beside the store itself: what a limiter denies without asking the store would deny at that
 * instant, and not for longer than the limiter says.
 */

const MAX_AGE = 1_000_000
const WINDOWS = [100, 1000, 10_000]
const LARGEST = 12

type Step =
  | {
      readonly kind: 'call'
      readonly cost: number
      readonly tier: number
      readonly late: Late
      readonly us: number
    }
  | { readonly kind: 'pass'; readonly us: number }
  /** Waits until `us` before the last denied call would pass. */
  | { readonly kind: 'wait'; readonly us: number }
  | { readonly kind: 'block' | 'hold' | 'reset' | 'refund' }

/** What of a call takes its time: the way to the store, or the way back. */
type Late = 'call' | 'reply' | 'nothing'

interface Scenario {
  /** Lists of equal shapes. */
  readonly tiers: readonly (readonly Policy[])[]
  readonly steps: readonly Step[]
}

const instants = fc.oneof(fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 1, max: 700_000 }))
const pass = fc.record({ kind: fc.constant('pass' as const), us: instants })
const costs = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: LARGEST }) },
  { weight: 1, arbitrary: fc.constant(0) },
)
const calls = (late: fc.Arbitrary<Late>, tier: fc.Arbitrary<number>) =>
  fc.record({
    kind: fc.constant('call' as const),
    cost: costs,
    tier,
    late,
    us: fc.integer({ min: 1, max: 40_000 }),
  })

const { shapes } = findShapes()
const numbers = fc.integer({ min: 1, max: LARGEST })

/** One or two policies, each of any shape, with two sets of limits. */
const lists: fc.Arbitrary<readonly (readonly Policy[])[]> = fc
  .array(fc.tuple(fc.constantFrom(...shapes), fc.constantFrom(...WINDOWS), numbers, numbers), {
    minLength: 1,
    maxLength: 2,
  })
  .map((drawn) =>
    [0, 1].map((tier) => drawn.map(([shape, window, ...limits]) => policyOf(shape, window, limits[tier]!))),
  )

function policyOf({ factory, variant }: Shape, window: number, limit: number): Policy {
  return factory({ ...variant, window, limit })
}

let now: number
let store: RemoteStore
let limiter: Limiter
const key = 'k'

function begin(tiers: readonly (readonly Policy[])[]): void {
  now = Date.UTC(2026, 0, 1) * 1000
  store = new RemoteStore(() => now, { maxAge: MAX_AGE, maxKeys: 100 })
  limiter = createLimiter({ name: 'api', policies: tiers[0]!, store })
}

/** Makes one call. Its decision, and whether the store was asked. */
async function call({ cost, tier, late, us }: Step & { kind: 'call' }, tiers: Scenario['tiers']) {
  const before = store.count('consume')
  if (late === 'call') store.stop()
  if (late === 'reply') store.holdReplies()
  const decided = limiter.decide(key, { cost, policies: tiers[tier]! })
  const asked = store.count('consume') > before
  if (asked && late !== 'nothing') now += us
  store.recover()
  return { decision: await decided, asked }
}

it('denies nothing that the store would admit, and reports no wait that is too short', async () => {
  const late = fc.constantFrom<Late>('call', 'reply', 'nothing')
  const change = fc.record({ kind: fc.constantFrom('block' as const, 'hold', 'reset', 'refund') })
  const wait = fc.record({ kind: fc.constant('wait' as const), us: fc.nat({ max: 40_000 }) })
  const steps = fc.array(
    fc.oneof(
      { weight: 12, arbitrary: calls(late, fc.nat({ max: 1 })) },
      { weight: 2, arbitrary: pass },
      { weight: 2, arbitrary: wait },
      { weight: 1, arbitrary: change },
    ),
    { minLength: 20, maxLength: 80 },
  )
  let unasked = 0
  await fc.assert(
    fc.asyncProperty(fc.record({ tiers: lists, steps }), async ({ tiers, steps }) => {
      begin(tiers)
      let passesAt = 0
      for (const step of steps) {
        if (step.kind === 'pass') now += step.us
        else if (step.kind === 'wait') now = Math.max(now, passesAt - step.us)
        else if (step.kind === 'reset' || step.kind === 'refund') await limiter[step.kind](key)
        else if (step.kind !== 'call') await limiter[step.kind](key, '300ms')
        else {
          const exact = await limiter.peek(key, { cost: step.cost, policies: tiers[step.tier]! })
          if (exact.retryAfterMs !== Infinity) passesAt = now + exact.retryAfterMs * 1000
          const { decision, asked } = await call(step, tiers)
          if (asked && step.late !== 'nothing') continue
          expectNoLess(decision, exact)
          if (asked) expect(decision.retryAfterMs).toBe(exact.retryAfterMs)
          else unasked++
        }
      }
    }),
    { numRuns: 200 },
  )
  expect(unasked).toBeGreaterThan(1000)
})

/** As the store decides, with a wait that is no shorter, under each policy. Of a cost that never fits nothing else is known. */
function expectNoLess(decision: Decision, exact: Decision): void {
  expect(decision.allowed).toBe(exact.allowed)
  expect(decision.retryAfterMs).toBeGreaterThanOrEqual(exact.retryAfterMs)
  if (exact.reason === 'cost') expect(decision.policy).toBe(exact.policy)
  else
    for (const [i, { retryAfterMs }] of decision.policies.entries())
      expect(retryAfterMs).toBeGreaterThanOrEqual(exact.policies[i]!.retryAfterMs)
}

it('asks five times a second and once for each unit that comes free, while nothing is admitted', async () => {
  const late = fc.constant<Late>('nothing')
  const steps = fc.array(
    fc.oneof({ weight: 12, arbitrary: calls(late, fc.constant(0)) }, { weight: 3, arbitrary: pass }),
    { minLength: 20, maxLength: 200 },
  )
  await fc.assert(
    fc.asyncProperty(fc.record({ tiers: lists, steps }), async ({ tiers, steps }) => {
      begin(tiers)
      let asks: { readonly at: number; readonly remaining: number }[] = []
      for (const step of steps) {
        if (step.kind === 'pass') now += step.us
        if (step.kind !== 'call') continue
        const { decision, asked } = await call(step, tiers)
        if (decision.allowed && step.cost > 0) asks = []
        if (decision.allowed || !asked) continue
        const { remaining } = decision
        asks = [...asks.filter(({ at }) => now - at < MAX_AGE), { at: now, remaining }]
        expect(asks.length).toBeLessThanOrEqual(5 + remaining - asks[0]!.remaining)
      }
    }),
    { numRuns: 500 },
  )
})

it('asks for four costs of calls that are made at once, once a denial is known', async () => {
  begin([[gcra({ limit: 100, window: '100s' })]])
  await limiter.charge(key, { cost: 200 })
  await limiter.consume(key)
  for (let bunch = 0; bunch < 3; bunch++) {
    const costs = Array.from({ length: 100 }, (_, i) => 1 + ((i * 37 + bunch) % 100))
    const exact = await Promise.all(costs.map((cost) => limiter.peek(key, { cost })))
    const decisions = await Promise.all(costs.map((cost) => limiter.consume(key, { cost })))
    decisions.forEach((decision, i) => expectNoLess(decision, exact[i]!))
    now += MAX_AGE / 10
  }
  expect(store.count('consume')).toBe(4)
})
