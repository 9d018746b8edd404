import type { DecidedBy, Decision, DenialReason, Policy } from '@sluice/core'
import type { Attributes, Observe } from '../sinks/sink.js'
import { OTHER } from './bounded-labels.js'

const RESULTS = ['allowed', 'denied', 'would_deny'] as const
const REASONS = ['none', 'limit', 'cost', 'blocked', 'held', 'degraded'] as const
const DECIDERS = ['memory', 'store', 'cache', 'lease', 'local', 'none'] as const
const BUCKETS = [0.25, 0.5, 0.75, 0.8, 0.9, 1] as const

type Result = 0 | 1 | 2

/** Cells of decisions, by result, reason and decider. Behind them lie those of evaluations, by bucket: allowed, then denied. */
const DECISIONS = RESULTS.length * REASONS.length * DECIDERS.length
const ALLOWED = DECISIONS
const DENIED = ALLOWED + BUCKETS.length

/** Numbers of one policy of one limiter, in one plain array: counting is an addition, and names are made when it is read. */
export class PolicyCounts {
  readonly #cells = new Float64Array(DENIED + BUCKETS.length)
  readonly #of: Attributes
  #policy: Policy

  /** Counts for one policy. `name` is the label of its values, which is 'other' where a limiter has too many policies. */
  constructor(limiter: string, name: string, policy: Policy) {
    this.#of = { limiter, policy: name }
    this.#policy = policy
  }

  /** The numbers of a policy of this name may change: tiers, or another list after a deployment. 'other' keeps its first. */
  use(policy: Policy): void {
    if (this.#of['policy'] !== OTHER) this.#policy = policy
  }

  /** Counts one decision in the cell of its result, reason and decider. */
  countDecision(result: Result, reason: DenialReason | undefined, decidedBy: DecidedBy): void {
    const cell = (result * REASONS.length + reasonNumber(reason)) * DECIDERS.length + deciderNumber(decidedBy)
    this.#cells[cell]!++
  }

  /**
   * Counts what this policy by itself said of a call, in the bucket of the share of its capacity that is used after the call.
   * `remaining` and `capacity` are in units.
   */
  countEvaluation(isDenied: boolean, remaining: number, capacity: number): void {
    this.#cells[(isDenied ? DENIED : ALLOWED) + bucketOf(capacity - remaining, capacity)]!++
  }

  /** Reports the counts of decisions that are not 0, with the names of result, reason and decider. */
  readDecisions(observe: Observe): void {
    for (const [cell, count] of this.#cells.subarray(0, DECISIONS).entries()) {
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
   * Reports how often the policy by itself passed a call and how often it did not: each the sum over the utilization's
   * buckets.
   */
  readEvaluations(observe: Observe): void {
    for (const [result, from] of [ALLOWED, DENIED].entries()) {
      const count = this.#cells.subarray(from, from + BUCKETS.length).reduce((sum, each) => sum + each, 0)
      if (count > 0) observe(count, { ...this.#of, result: RESULTS[result]! })
    }
  }

  /** Reports how often calls found each bucket of the capacity used up, `bucket` being its upper bound. */
  readUtilization(observe: Observe): void {
    for (const [i, bucket] of BUCKETS.entries()) {
      const count = this.#cells[ALLOWED + i]! + this.#cells[DENIED + i]!
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
 * True for a decision that must not be counted: one of a call on several keys (`together` is how many) whose own policies
 * allowed it, and that charged nothing because another of the keys denied the whole call. The denial is counted for that key.
 */
export function isOverruled(decision: Decision, together: number): boolean {
  return together > 1 && !decision.charged && decision.reason === undefined
}

/** The result as the number that `countDecision` takes: 0 allowed, 1 denied, 2 allowed only because of shadow mode. */
export function resultOf({ allowed, reason }: Decision): Result {
  if (!allowed) return 1
  return reason === undefined ? 0 : 2
}

/** The name of a result in metrics and spans, by the number that `resultOf` returns: 'allowed', 'denied' or 'would_deny'. */
export function resultName(result: number): string {
  return RESULTS[result]!
}

export const RESULT_COUNT = RESULTS.length

/** The place of a reason in REASONS. The usual ones are compared first: a look-up in a table takes three times as long. */
function reasonNumber(reason: DenialReason | undefined): number {
  if (reason === undefined) return 0
  if (reason === 'limit') return 1
  return Math.max(1, REASONS.indexOf(reason))
}

/** The place in DECIDERS of what decided. The usual ones are compared first, which is faster than a look-up. */
function deciderNumber(decidedBy: DecidedBy): number {
  if (decidedBy === 'memory') return 0
  if (decidedBy === 'store') return 1
  return Math.max(1, DECIDERS.indexOf(decidedBy))
}

/**
 * The index in BUCKETS of the first share of the capacity that the used units do not exceed; the last where they exceed all.
 * Comparisons in a row, as this runs for each decision.
 */
function bucketOf(used: number, capacity: number): number {
  if (used <= capacity * 0.25) return 0
  if (used <= capacity * 0.5) return 1
  if (used <= capacity * 0.75) return 2
  if (used <= capacity * 0.8) return 3
  return used <= capacity * 0.9 ? 4 : 5
}
