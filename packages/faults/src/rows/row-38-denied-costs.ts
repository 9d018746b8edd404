import { createLimiter, memoryStore } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type Address, command, startRedis } from '@sluice/harness/redis'
import { everyAlgorithm } from '../every-algorithm.js'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'

/** A denied caller who varies the cost reaches Redis no more often than one who does not. */
export const row: Row = { number: 38, fault: 'denied costs', run: vary, perhaps: ['STORE_FORGETS'] }

const LIMIT = 1000
const CALLS = 100_000
/** Simulated. */
const SECONDS = 20
const SECOND = 1_000_000
const START = Date.UTC(2026, 0, 1) * 1000
/** Costs that fit at no time of the row, except those above the limit, which fit never. */
const LEAST = 500
const PATTERNS: Readonly<Record<string, (i: number) => number>> = {
  'eight in turn': (i) => LEAST + (i % 8),
  falling: (i) => LIMIT - (i % (LIMIT - LEAST)),
  mixed: (i) => LEAST + ((i * 7919) % (LIMIT - LEAST)),
  'beyond the capacity': (i) => LIMIT + 1 + i,
}

/**
 * Repeats denied calls of varying costs. Passes if few of them reach Redis, and none is admitted wrongly or with too short a
 * wait. `share` is the part of the full load, 0 to 1.
 */
async function vary(share: number): Promise<Outcome> {
  const server = await startRedis()
  try {
    const specs = [...everyAlgorithm(LIMIT), ...refilled()].map(([, spec]) => spec)
    const calls = Math.ceil(CALLS * share)
    const outcomes: Outcome[] = []
    for (const [pattern, costOf] of Object.entries(PATTERNS)) {
      const seen: Seen[] = []
      for (const spec of specs) seen.push(await deny({ server, spec, calls, costOf }))
      outcomes.push(judged(pattern, calls, seen, costOf(0) > LIMIT))
    }
    outcomes.push(await denyAtOnce(server))
    return together(outcomes)
  } finally {
    await server.stop()
  }
}

/** Policies of which ten units a second come free again, so that a denied cost fits later. */
function refilled(): readonly (readonly [string, PolicySpec])[] {
  const options = { limit: LIMIT, window: '100s' }
  return [
    ['gcra', ['gcra', options]],
    ['weighted sliding window', ['slidingWindow', { ...options, count: 'weighted' }]],
  ]
}

interface Job {
  readonly server: Address
  readonly spec: PolicySpec
  readonly calls: number
  readonly costOf: (i: number) => number
}

interface Seen {
  readonly reached: number
  /** The most calls that reached Redis within a second, less the units that came free meanwhile. */
  readonly mostASecond: number
  /** Calls that were admitted, or whose wait was shorter than it is. */
  readonly wrong: number
}

/** Uses a key up and goes on calling, beside a store in memory with the same past. */
async function deny({ server, spec, calls, costOf }: Job): Promise<Seen> {
  await command(server, 'FLUSHALL')
  let now = START
  const clock = () => now
  const store = redisStore({ host: server.host, port: server.port }, { clock })
  const options = { name: 'denied', policies: [policyOf(spec)], deadline: '10s' } as const
  const limiter = createLimiter({ ...options, store })
  const twin = createLimiter({ ...options, store: memoryStore({ clock }) })
  try {
    for (const each of [limiter, twin])
      for (let used = 0; used < LIMIT; used += LEAST) await each.consume('k', { cost: LEAST })
    const before = await scriptsRun(server)
    let wrong = 0
    let mostASecond = 0
    let asks: { readonly at: number; readonly remaining: number }[] = []
    for (let i = 0; i < calls; i++) {
      now = START + Math.floor((i * SECONDS * SECOND) / calls)
      const cost = costOf(i)
      const decided = limiter.decide('k', { cost })
      const { allowed, retryAfterMs, remaining } = await decided
      const exact = await twin.peek('k', { cost })
      if (allowed || exact.allowed || retryAfterMs < exact.retryAfterMs) wrong++
      if ('allowed' in decided) continue
      asks = [...asks.filter(({ at }) => now - at < SECOND), { at: now, remaining }]
      mostASecond = Math.max(mostASecond, asks.length - (remaining - asks[0]!.remaining))
    }
    return { reached: (await scriptsRun(server)) - before, mostASecond, wrong }
  } finally {
    await limiter.close()
    await store.close()
    await twin.close()
  }
}

/** Calls of all costs are made at once on a key that was just denied. */
async function denyAtOnce(server: Address): Promise<Outcome> {
  const store = redisStore({ host: server.host, port: server.port }, { clock: () => START })
  const policies = [policyOf(['gcra', { limit: AT_ONCE, window: '100s' }])]
  const limiter = createLimiter({ name: 'at once', policies, store, deadline: '10s' })
  try {
    await limiter.consume('k', { cost: AT_ONCE })
    await limiter.consume('k')
    const before = await scriptsRun(server)
    const costs = Array.from({ length: AT_ONCE }, (_, i) => i + 1)
    const decisions = await Promise.all(costs.map((cost) => limiter.consume('k', { cost })))
    const reached = (await scriptsRun(server)) - before
    const wrong = decisions.filter(({ allowed }) => allowed).length
    const figure = `${AT_ONCE} calls at once: ${reached} reached Redis (bar 4), ${wrong} admitted`
    return { pass: wrong === 0 && reached <= 4, figure }
  } finally {
    await limiter.close()
    await store.close()
  }
}

const AT_ONCE = 100

/** The outcome of one pattern of costs over all policies. Costs beyond the capacity (`isBeyond`) reach Redis once a second. */
function judged(pattern: string, calls: number, seen: readonly Seen[], isBeyond: boolean): Outcome {
  const mostASecond = Math.max(...seen.map((each) => each.mostASecond))
  const reached = Math.max(...seen.map((each) => each.reached))
  const wrong = seen.reduce((sum, each) => sum + each.wrong, 0)
  const figure =
    `${pattern}: ${calls} calls in ${SECONDS} s x ${seen.length} policies, at most ${reached} reached Redis, ` +
    `${mostASecond} a second beside the units that came free, ${wrong} admitted or with too short a wait`
  return { pass: wrong === 0 && mostASecond <= (isBeyond ? 1 : 5) && reached > 0, figure }
}

/** Calls of scripts that Redis has carried out. */
async function scriptsRun(server: Address): Promise<number> {
  const stats = await command<string>(server, 'INFO', 'commandstats')
  return ['eval', 'evalsha'].reduce((sum, name) => {
    const calls = new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1]
    return sum + Number(calls ?? 0)
  }, 0)
}
