import type { Policy } from '@sluice/core'
import { Ring, State, type View } from '@sluice/core/store'
import { Hit, Tally } from './tally.js'
import type { CallerCalls } from './trace.js'

/**
 * The most units that one caller spent in any stretch of `span` microseconds, (t - span, t]. `calls` has his instants and
 * costs in order of time, at the indices `from` to `to`. A window slides over them: each call is added, and calls that
 * are too old for it are taken off. `looks` counts the calls that were looked at, the measure of work by which pauses are
 * made.
 */
export function peakIn(calls: CallerCalls, span: number): number {
  const { times, costs, from, to } = calls
  calls.looks += to - from
  let [units, most, oldest] = [0, 0, from]
  for (let i = from; i < to; i++) {
    units += costs[i]!
    while (times[oldest]! <= times[i]! - span) units -= costs[oldest++]!
    if (units > most) most = units
  }
  return most
}

/** One policy over the calls of one caller after another, decided by its algorithm. */
export class Cell {
  readonly tally = new Tally()
  /** The span in which a caller of at most `capacity` units is never denied. */
  readonly span: number
  readonly #state: State
  readonly #view: View = { remaining: 0, resetAt: 0 }

  /**
   * One policy with state for one caller at a time, in which callers are replayed one after another. `span` is the length
   * of time, in microseconds, in which a caller of at most `capacity` units is never denied.
   */
  constructor(readonly policy: Policy) {
    this.span = policy.algorithm.bounds.reach(policy)
    this.#state = new State(new Float64Array(policy.algorithm.cells(policy)), 0, new Ring())
  }

  /**
   * Replays the calls of one caller under the policy, and returns how hard it would have hit him: his denials and the
   * longest time that he was locked out. What is known of the caller before him is emptied first: the `cells`, which are
   * the numbers that an algorithm keeps of a caller, and the `ring`, in which a sliding log keeps instants. The replay
   * stops after `most` denials, as one is enough to know that a limit is too small.
   */
  hit(calls: CallerCalls, most = Infinity): Hit {
    const { times, costs, from, to } = calls
    const state = this.#state
    state.cells.fill(0)
    state.ring.keep(0)
    const hit = new Hit(to - from)
    let i = from
    for (; i < to && hit.denied < most; i++) {
      const until = this.#decide(state, times[i]!, costs[i]!)
      if (until <= times[i]!) hit.allowed()
      else hit.add(times[i]!, until)
    }
    calls.looks += i - from
    return hit
  }

  /**
   * Decides a call of `cost` units at the instant `at`, in microseconds. Returns the instant at which the cost would
   * pass: `at` itself if the call is allowed, and it is charged then; a later instant if it is denied. Some algorithms do
   * both in one pass (`take`); otherwise the earliest instant is asked for, and then the call is admitted.
   */
  #decide(state: State, at: number, cost: number): number {
    const { policy } = this
    const { algorithm } = policy
    if (cost === 0) return at
    if (algorithm.take) return algorithm.take(state, policy, at, cost, this.#view)
    const until = algorithm.earliest(state, policy, at, cost)
    if (until <= at) algorithm.admit(state, policy, at, cost)
    return until
  }
}
