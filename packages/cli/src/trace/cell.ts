import type { Policy } from '@sluice/core'
import { Ring, State, type View } from '@sluice/core/store'
import { Hit, Tally } from './tally.js'
import type { CallerCalls } from './trace.js'

/**
 * Returns the most units that one caller spent in any span of `span` microseconds, (t - span, t]. `calls` has the instants and
 * costs of his calls in order of time, at the indices `from` up to `to`. A window slides over them: each call is added, and calls
 * that are too old for it are taken off. `looks` counts the calls that were looked at, the work after which a pause is due.
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

  /** Makes the state of one caller under the policy, in which callers are then replayed one after another. */
  constructor(readonly policy: Policy) {
    this.span = policy.algorithm.bounds.reach(policy)
    this.#state = new State(new Float64Array(policy.algorithm.cells(policy)), 0, new Ring())
  }

  /**
   * Replays the calls of one caller under the policy, and returns how hard it would have hit him: his denials and the longest time
   * that he was locked out. First the state of the caller before him is emptied: the `cells`, the numbers that an algorithm keeps
   * of a caller, and the `ring`, in which a sliding log keeps instants. The replay stops after `most` denials.
   */
  replay(calls: CallerCalls, most = Infinity): Hit {
    const { times, costs, from, to } = calls
    const state = this.#state
    state.cells.fill(0)
    state.ring.keep(0)
    const hit = new Hit(to - from)
    let i = from
    for (; i < to && hit.denied < most; i++) {
      const until = this.#decide(state, times[i]!, costs[i]!)
      if (until <= times[i]!) hit.addAllowed()
      else hit.addDenial(times[i]!, until)
    }
    calls.looks += i - from
    return hit
  }

  /**
   * Decides a call of `cost` units at the instant `at`, in microseconds, and charges it if it is allowed. Returns the instant at
   * which the cost would pass: `at` if the call is allowed, a later instant if it is denied. Some algorithms decide and charge in
   * one pass (`take`), others in two (`earliest`, `admit`). A call of cost 0 is always allowed.
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
