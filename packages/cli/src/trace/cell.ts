import type { Policy } from '@sluice/core'
import { Ring, State, type View } from '@sluice/core/store'
import { untouchedSpan } from '@sluice/policies'
import { LockOut } from './lock-out.js'
import type { CallerCalls } from './trace.js'

/** The most units of one caller in any span (t - span, t]. */
export function peakIn({ times, costs, from, to }: CallerCalls, span: number): number {
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
  readonly policy: Policy
  readonly lockOut = new LockOut()
  /** The span in which a caller of at most `capacity` units is never denied. */
  readonly span: number
  readonly #state: State
  readonly #view: View = { remaining: 0, resetAt: 0 }

  constructor(policy: Policy) {
    this.policy = policy
    this.span = untouchedSpan(policy)
    this.#state = new State(new Float64Array(policy.algorithm.cells(policy)), 0, new Ring())
  }

  /** Counts the calls that are denied, up to `most`. `lockOut` has the longest lock-out afterwards. */
  denials({ times, costs, from, to }: CallerCalls, most = Infinity): number {
    const { policy, lockOut } = this
    const state = this.#state
    state.cells.fill(0)
    state.ring.keep(0)
    lockOut.begin()
    let denied = 0
    for (let i = from; i < to && denied < most; i++) {
      const at = times[i]!
      const until = this.#decide(policy, state, at, costs[i]!)
      if (until <= at) lockOut.allowed()
      else {
        denied++
        lockOut.denied(at, until)
      }
    }
    return denied
  }

  /** The instant at which the call passes; it is charged if that is now. */
  #decide(policy: Policy, state: State, at: number, cost: number): number {
    if (cost === 0) return at
    const { algorithm } = policy
    if (algorithm.take) return algorithm.take(state, policy, at, cost, this.#view)
    const until = algorithm.earliest(state, policy, at, cost)
    if (until <= at) algorithm.admit(state, policy, at, cost)
    return until
  }
}
