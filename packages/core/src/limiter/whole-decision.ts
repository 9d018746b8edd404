import { checkCost } from '../values/cost.js'
import { expectedButGot, InputError } from '../values/errors.js'
import type { CallOutcome, Permit } from '../values/permit.js'
import type { Decision, DecisionRecord } from './decision.js'
import type { Reservation } from './reservation.js'

/** The answer to a call on several keys. */
export class WholeDecision {
  /** Whether the call may go on. If not, no part was charged. */
  readonly allowed: boolean
  /**
   * The decision of each part with a key, in order; where a permit was refused, one with the reason 'concurrency' alone, as no
   * limiter was asked. Of a denied whole, `allowed` says whether the part would pass by itself, `charged` is
   * false and `remaining` is without the part. If a part was known to be denied before any store was asked, the others say how
   * their keys stood within the last second.
   */
  readonly decisions: readonly Decision[]
  /** The permits that the call holds until `release`; none if it is denied. */
  readonly permits: readonly Permit[]

  /**
   * Makes the answer to a call on several keys out of the decisions, one about each key. It is allowed if all of them are. `permits`
   * are those of semaphores that the call has taken too, and holds until they are released.
   */
  constructor(decisions: readonly Decision[], permits: readonly Permit[] = NO_PERMITS) {
    this.permits = permits
    this.allowed = decisions.every(({ allowed }) => allowed)
    this.decisions = decisions
  }

  /** Of `reserveAll`: the reservation of each part with a key, in order; none if the call is denied. */
  get reservations(): readonly Reservation[] {
    return this.allowed ? this.decisions.flatMap(({ reservation }) => reservation ?? []) : []
  }

  /** Of the denied decisions, the one with the longest wait; the first of equal ones. Undefined if the call is allowed. */
  get denied(): Decision | undefined {
    const denied = this.decisions.filter(({ allowed }) => !allowed)
    return denied.find(({ retryAfterMs }) => denied.every((other) => other.retryAfterMs <= retryAfterMs))
  }

  /**
   * Milliseconds until every part would pass, the longest wait of all: 0 = now, Infinity = never. 0 where a permit is missing:
   * nothing says when one is released.
   */
  get retryAfterMs(): number {
    return this.denied?.retryAfterMs ?? 0
  }

  /** Releases the permits that the call holds, as `permit.release` does; the units that its keys were charged stay charged. */
  async release(outcome?: CallOutcome, tookMs?: number): Promise<void> {
    await Promise.all(this.permits.map((permit) => permit.release(outcome, tookMs)))
  }

  /**
   * Corrects the costs to the real ones, as `decision.settle` does: one for all keys, or one for each. A key that the caller
   * named twice has one decision, with the summed cost, so its real costs are added up and it is settled once. Resolves to the
   * units that took effect in each part, below 0 if units were given back; in a denied whole, 0.
   * @throws {SluiceError} ALREADY_SETTLED the second time; {InputError} INVALID_COST; {StoreError} when a store fails: the other
   * parts are settled then, and the decision of that part may be settled by itself.
   */
  async settle(realCosts: number | readonly number[]): Promise<readonly number[]> {
    const { decisions } = this
    const costs = typeof realCosts === 'number' ? decisions.map(() => realCosts) : realCosts
    if (!Array.isArray(costs) || costs.length !== decisions.length) {
      const what = `costs must be a number or a list of ${decisions.length}`
      throw expectedButGot(InputError, 'INVALID_COST', what, realCosts)
    }
    const sums = new Map<Decision, number>()
    // All are checked before the first is settled.
    for (const [i, decision] of decisions.entries()) {
      const sum = (sums.get(decision) ?? 0) + checkCost(costs[i], 'real cost')
      sums.set(decision, checkCost(sum, 'real cost'))
    }
    const effects = new Map<Decision, Promise<number>>()
    for (const [decision, sum] of sums) effects.set(decision, decision.settle(sum))
    return Promise.all(decisions.map((decision) => effects.get(decision)!))
  }

  /** All fields, as a plain object: what `JSON.stringify` writes. */
  toJSON(): WholeRecord {
    const { allowed, retryAfterMs } = this
    const decisions = this.decisions.map((decision) => decision.toJSON())
    return { allowed, retryAfterMs, denied: this.denied && this.decisions.indexOf(this.denied), decisions }
  }
}

const NO_PERMITS: readonly Permit[] = []

/** The plain object that `toJSON()` of a decision on several keys returns. */
export interface WholeRecord {
  readonly allowed: boolean
  readonly retryAfterMs: number
  /** The place of the part that binds. */
  readonly denied: number | undefined
  readonly decisions: readonly DecisionRecord[]
}
