import fc from 'fast-check'
import {
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.js'
import { SlowStore, Timeline } from '@sluice/harness/stores'
import { runsIn } from '@sluice/testing/internal'

/*
 * Processes with leases call for one key, over ways on which calls and answers take their time. What was served is
 * counted again, from the promise alone: at the moments at which callers were told, and where windows begin and end at
 * moments of the store's clock, calls that the store answered itself at the moments at which it did.
 */

const WINDOW = 100_000
const TTL = 40_000
const LIMIT = 40
const numbers = { limit: LIMIT, window: '100ms' } as const

interface Served {
  readonly at: number
  /** When the store decided, where it did not decide for several calls. */
  readonly decidedAt: number
  readonly cost: number
}

/** The most that may be served from the moment `s` to the moment `t`, both included; undefined: nothing is promised. */
type Bound = (s: number, t: number) => number | undefined

const inOneWindow: Bound = (s, t) => (t - s < WINDOW ? LIMIT : undefined)
const bucket =
  (capacity: number): Bound =>
  (s, t) =>
    capacity + (LIMIT * (t - s)) / WINDOW
const windowOf = (at: number): number => Math.floor(at / WINDOW)

const algorithms: readonly (readonly [string, Policy, Bound])[] = [
  ['sliding log', slidingLog(numbers), inOneWindow],
  ['sliding window', slidingWindow(numbers), inOneWindow],
  ['sliding window of 7 buckets', slidingWindow({ ...numbers, window: '105ms', buckets: 7 }), inOneWindow],
  [
    'weighted sliding window',
    slidingWindow({ ...numbers, count: 'weighted' }),
    (s, t) => (t - s <= WINDOW ? LIMIT * (1 + (t - s) / WINDOW) : undefined),
  ],
  [
    'two counters',
    slidingWindow({ ...numbers, count: 'weighted', buckets: 1 }),
    (s, t) => (t - s <= WINDOW ? LIMIT * (1 + (t - s) / WINDOW) : undefined),
  ],
  ['fixed window', fixedWindow(numbers), (s, t) => (windowOf(s) === windowOf(t) ? LIMIT : undefined)],
  ['gcra', gcra({ ...numbers, burst: 30 }), bucket(30)],
  ['leaky bucket', leakyBucket({ ...numbers, capacity: 60 }), bucket(60)],
  ['token bucket', tokenBucket(numbers), bucket(LIMIT)],
  [
    'token bucket by interval',
    tokenBucket({ ...numbers, refill: 'interval', capacity: 50 }),
    (s, t) => 50 + LIMIT * (windowOf(t) - windowOf(s)),
  ],
]

/** The longest way there and back takes as long as a lease: who waits for an answer is served within it too. */
const delay = fc.integer({ min: 0, max: TTL / 2 - 1000 })
/** Moments at which leases and windows are about to end are where a mistake would show. */
const gap = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 300 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 5000 }) },
  { weight: 3, arbitrary: fc.constantFrom(TTL - 200, TTL / 2, WINDOW - TTL, WINDOW - 200, WINDOW) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 1.5 * WINDOW }) },
)
const traffic = fc.record({
  size: fc.constantFrom(1, 3, 10, 100),
  delays: fc.oneof(fc.constantFrom([0], [TTL / 2 - 1000]), fc.array(delay, { minLength: 1, maxLength: 20 })),
  calls: fc.array(
    fc.record({
      gap,
      process: fc.nat(2),
      cost: fc.constantFrom(1, 1, 1, 1, 2, 5),
      times: fc.constantFrom(1, 2, 5, 50),
    }),
    { minLength: 50, maxLength: 150 },
  ),
})
type Traffic = typeof traffic extends fc.Arbitrary<infer T> ? T : never

/** One process, and five times the limit at an even pace: calls are served from memory, and some denied, whatever is drawn. */
const steady: Traffic = {
  size: 10,
  delays: [0],
  calls: Array.from({ length: 150 }, () => ({ gap: 500, process: 0, cost: 1, times: 1 })),
}

async function served(policies: readonly Policy[], { size, delays, calls }: Traffic) {
  const timeline = new Timeline()
  const server = memoryStore({ clock: timeline.now })
  let turn = 0
  const stores = Array.from({ length: 3 }, () => {
    return new SlowStore(server, timeline, () => delays[turn++ % delays.length]!)
  })
  const keyspaces = stores.map((store) => {
    const leases = { ttl: 40, size, maxKeys: 10_000 }
    const settings = { deadline: 60_000, onStoreError: { mode: 'throw', share: 1 }, leases } as const
    return store.guard.store(store, settings).keyspace('f', policies, () => {})
  })
  const told: Served[] = []
  let [denied, fromMemory] = [0, 0]
  const call = async (process: number, cost: number): Promise<void> => {
    const keyspace = keyspaces[process]!
    const asked = keyspace.decide('consume', 'k', cost, 0)
    if ('at' in asked) fromMemory++
    const answer = await asked
    const at = timeline.now()
    if (answer.reason !== undefined) denied++
    else told.push({ at, cost, decidedAt: answer.from === 'lease' ? at : answer.now })
  }
  let at = 0
  for (const { gap, process, cost, times } of calls) {
    at += gap
    timeline.after(at, () => {
      for (let i = 0; i < times; i++) void call(process, cost)
    })
  }
  await timeline.run()
  await server.close()
  return { told, denied, fromMemory }
}

/** The first span in which more was served than the bound allows. */
function excess(told: readonly Served[], bound: Bound): string | undefined {
  told = told.toSorted((a, b) => a.at - b.at)
  for (let i = 0; i < told.length; i++) {
    let sum = 0
    for (let j = i; j < told.length; j++) {
      sum += told[j]!.cost
      if (told[j + 1]?.at === told[j]!.at) continue
      const most = bound(told[i]!.at, told[j]!.at)
      if (most !== undefined && sum > most) return `${sum} > ${most} in ${told[j]!.at - told[i]!.at} us`
    }
  }
  return undefined
}

const RUNS = runsIn('LEASE_RUNS', 25)

describe.each(algorithms)('%s with leases', (_, policy, bound) => {
  const isAligned = policy.algorithm.leasing!.end(policy, 0) < Infinity

  it('never serves more than it promises in any span, however late answers come', async () => {
    let [memory, refusals] = [0, 0]
    await fc.assert(
      fc.asyncProperty(traffic, async (given) => {
        const { told, denied, fromMemory } = await served([policy], given)
        memory += fromMemory
        refusals += denied
        expect(
          excess(isAligned ? told.map((call) => ({ ...call, at: call.decidedAt })) : told, bound),
        ).toBeUndefined()
      }),
      { numRuns: RUNS, endOnFailure: true, examples: [[steady]] },
    )
    expect(memory).toBeGreaterThan(0)
    expect(refusals).toBeGreaterThan(0)
  }, 120_000)
})

it('keeps what each of several policies promises', async () => {
  const policies = [
    gcra({ ...numbers, burst: 30 }),
    slidingLog({ ...numbers, limit: 35, name: 'log' }),
    fixedWindow({ ...numbers, name: 'fixed' }),
  ]
  await fc.assert(
    fc.asyncProperty(traffic, async (given) => {
      const { told } = await served(policies, given)
      expect(excess(told, bucket(30))).toBeUndefined()
      expect(excess(told, (s, t) => (t - s < WINDOW ? 35 : undefined))).toBeUndefined()
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
}, 120_000)
