import type { DecidedBy, Decision, DenialReason, Policy } from '@sluice/core'
import type { Attributes, Observe } from '../sinks/sink.js'
import { OTHER } from './bounded-labels.js'

const RESULTS = ['allowed', 'denied', 'would_deny'] as const
/** Why calls were denied, as the attribute `reason` has it. */
export const REASONS = ['none', 'limit', 'cost', 'blocked', 'held', 'degraded', 'reservations'] as const
const DECIDERS = ['memory', 'store', 'cache', 'lease', 'local', 'none'] as const
const BUCKETS = [0.25, 0.5, 0.75, 0.8, 0.9, 1] as const

type Result = 0 | 1 | 2

/** How many cells decisions have, by result, reason and decider. Behind them lie those of evaluations by bucket. */
const DECISION_CELLS = RESULTS.length * REASONS.length * DECIDERS.length
const FIRST_ALLOWED = DECISION_CELLS
const FIRST_DENIED = FIRST_ALLOWED + BUCKETS.length

/** Numbers of one policy of one limiter, in one plain array: counting is an addition, and names are made when it is read. */
export class PolicyCounts {
  readonly #cells = new Float64Array(FIRST_DENIED + BUCKETS.length)
  readonly #of: Attributes
  #policy: Policy

  /**
   * Counts for one policy of the limiters of this name. `name` is the label of its values: the policy's name, or 'other'
   * where a limiter has too many policies.
   */
  constructor(limiter: string, name: string, policy: Policy) {
    this.#of = { limiter, policy: name }
    this.#policy = policy
  }

  /**
   * Notes the policy whose limit and window are reported from now on: a tier or a later deployment may bring other numbers under the
   * same name. 'other', which stands for many policies, reports those of its first.
   */
  use(policy: Policy): void {
    if (this.#of['policy'] !== OTHER) this.#policy = policy
  }

  /** Counts one decision by its result, its reason and what decided it. One array has a cell for each combination. */
  countDecision(result: Result, reason: DenialReason | undefined, decidedBy: DecidedBy): void {
    const cell = (result * REASONS.length + reasonNumber(reason)) * DECIDERS.length + deciderNumber(decidedBy)
    this.#cells[cell]!++
  }

  /**
   * Counts whether this policy by itself denied a call, in the bucket of the share of its capacity that is used after the
   * call: at most 0.25, 0.5, 0.75, 0.8, 0.9 or 1. `remaining` and `capacity` are in units.
   */
  countEvaluation(isDenied: boolean, remaining: number, capacity: number): void {
    this.#cells[(isDenied ? FIRST_DENIED : FIRST_ALLOWED) + bucketOf(capacity - remaining, capacity)]!++
  }

  /**
   * Reports the counts of decisions that are not 0, with the names of result, reason and decider. The index of a cell is
   * (result * reasons + reason) * deciders + decider, which is taken apart here.
   */
  readDecisions(observe: Observe): void {
    for (const [cell, count] of this.#cells.subarray(0, DECISION_CELLS).entries()) {
      if (count === 0) continue
      const decider = cell % DECIDERS.length
      const rest = (cell - decider) / DECIDERS.length
      observe(count, {
        ...this.#of,
        result: RESULTS[Math.floor(rest / REASONS.length)]!,
        reason: REASONS[rest % REASONS.length]!,
        decided_by: DECIDERS[decider]!,
      })
    }
  }

  /**
   * Reports how many calls the policy by itself allowed and how many it denied. Both are counted by buckets, the shares of the
   * capacity in use, so each is a sum over all buckets.
   */
  readEvaluations(observe: Observe): void {
    for (const [result, first] of [FIRST_ALLOWED, FIRST_DENIED].entries()) {
      let sum = 0
      for (const count of this.#cells.subarray(first, first + BUCKETS.length)) sum += count
      if (sum > 0) observe(sum, { ...this.#of, result: RESULTS[result]! })
    }
  }

  /**
   * Reports after how many calls each share of the capacity was in use, allowed and denied calls together. `bucket` is the upper
   * bound of the share.
   */
  readUtilization(observe: Observe): void {
    for (const [i, bucket] of BUCKETS.entries()) {
      const count = this.#cells[FIRST_ALLOWED + i]! + this.#cells[FIRST_DENIED + i]!
      if (count > 0) observe(count, { ...this.#of, bucket: String(bucket) })
    }
  }

  /** Reports the units that the policy allows in a window. */
  readLimit(observe: Observe): void {
    observe(this.#policy.limit, this.#of)
  }

  /** Reports the policy's window in seconds. */
  readWindow(observe: Observe): void {
    observe(this.#policy.windowMs / 1000, this.#of)
  }
}

/**
 * Whether another key of the same call overruled the decision of one key, so that it must not be counted: this key's policies
 * allowed the call, but the other key denied the whole, so nothing was charged. The denial is counted for the other key. `together`
 * is the number of keys of the call. A call that passes only because the store is out of reach (`degraded`, decided by 'none') is
 * not charged either, but it is counted, so that the counts show the outage.
 */
export function isOverruled(decision: Decision, decidedBy: DecidedBy, together: number): boolean {
  if (together === 1 || decision.charged || decision.reason !== undefined) return false
  return decidedBy !== 'none' || decision.degraded === undefined
}

/**
 * The result of a decision as the number that `countDecision` takes: 0 allowed, 1 denied, 2 allowed only because of
 * shadow mode, in which a decision that would have denied has a reason and is allowed.
 */
export function resultOf({ allowed, reason }: Decision): Result {
  if (!allowed) return 1
  return reason === undefined ? 0 : 2
}

/** The name of a result in metrics and spans, by the number that `resultOf` returns: 'allowed', 'denied' or 'would_deny'. */
export function resultName(result: number): string {
  return RESULTS[result]!
}

export const RESULT_COUNT = RESULTS.length

/**
 * The place of a reason in REASONS; 0 for undefined, which is no denial. The usual reasons are compared first, since a
 * look-up takes three times as long. A reason that this version does not know counts as 'limit'.
 */
function reasonNumber(reason: DenialReason | undefined): number {
  if (reason === undefined) return 0
  if (reason === 'limit') return 1
  return Math.max(1, (REASONS as readonly DenialReason[]).indexOf(reason))
}

/**
 * The place in DECIDERS of what made the decision, such as 'memory' or 'store'. These two, the usual ones, are compared
 * first, which is faster than a look-up. One that this version does not know counts as 'store'.
 */
function deciderNumber(decidedBy: DecidedBy): number {
  if (decidedBy === 'memory') return 0
  if (decidedBy === 'store') return 1
  return Math.max(1, DECIDERS.indexOf(decidedBy))
}

/**
 * The index in BUCKETS of the bucket for `used` units of a capacity: the first whose share of the capacity (0.25, 0.5,
 * 0.75, 0.8, 0.9 or 1) is not exceeded, and the last if all are. Comparisons are written out, as this runs for each
 * decision.
 */
function bucketOf(used: number, capacity: number): number {
  if (used <= capacity * 0.25) return 0
  if (used <= capacity * 0.5) return 1
  if (used <= capacity * 0.75) return 2
  if (used <= capacity * 0.8) return 3
  return used <= capacity * 0.9 ? 4 : 5
}
