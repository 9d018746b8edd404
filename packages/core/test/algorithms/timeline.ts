import type { Clock } from '../../src/values/clock.js'
import { createLimiter, type Decision, memoryStore, type Policy } from '../../src/index.js'
import type { Store } from '../../src/stores/store.js'

/**
 * One call of a table: when it comes, its cost, and the answer. Times in milliseconds. `remaining` is after the call.
 */
export type Row = readonly [
  ms: number,
  cost: number,
  allowed: boolean,
  remaining: number,
  retryAfterMs: number,
  resetAfterMs: number,
]

/** Makes the calls of a table on one key and returns the table with the answers that came. */
export function play(policies: readonly Policy[], rows: readonly Row[]): readonly Row[] {
  const decide = keyOf(policies)
  return rows.map(([ms, cost]) => {
    const { allowed, remaining, retryAfterMs, resetAfterMs } = decide(ms, cost)
    return [ms, cost, allowed, remaining, retryAfterMs, resetAfterMs]
  })
}

let openStore: (options: { readonly clock: Clock }) => Store = memoryStore

/** From now on tables are played on stores that this opens, which answer at once, instead of the memory store. */
export function playOn(open: typeof openStore): void {
  openStore = open
}

/** A test that makes thousands of calls; only the memory store answers so many in a moment. */
export function itInBulk(name: string, test: () => void): void {
  if (openStore === memoryStore) it(name, test)
}

/** One key of a limiter, whose clock stands where each call says. */
export function keyOf(policies: readonly Policy[]): (ms: number, cost?: number) => Decision {
  let now = 0
  const store = openStore({ clock: () => now })
  const limiter = createLimiter({ name: 'timeline', policies, store })
  return (ms, cost = 1) => {
    now = ms * 1000
    return limiter.decide('key', { cost }) as Decision
  }
}

/** Instants of the calls that passed, of one call at each of these instants. */
export function passed(policies: readonly Policy[], instants: readonly number[]): readonly number[] {
  const decide = keyOf(policies)
  return instants.filter((ms) => decide(ms).allowed)
}

/** The most instants in any span (t - ms, t]. */
export function busiest(instants: readonly number[], ms: number): number {
  let oldest = 0
  return Math.max(
    0,
    ...instants.map((instant, i) => {
      while (instants[oldest]! <= instant - ms) oldest++
      return i - oldest + 1
    }),
  )
}

/** Crowds of 300 calls just before and after each hour, half hour and tenth of an hour, for half a day. */
export function crowds(): readonly number[] {
  const hour = 3_600_000
  const edges = Array.from({ length: 12 * 10 }, (_, i) => (i + 1) * (hour / 10))
  return edges
    .filter((_, i) => i % 3 !== 1)
    .flatMap((edge) => [edge - 1, edge, edge + 1].flatMap((ms) => Array<number>(100).fill(ms)))
}
