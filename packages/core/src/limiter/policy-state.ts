import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer } from '../stores/store.js'
import { wholeMs } from '../values/clock.js'

/** The state of one policy of the list. Times are whole milliseconds, rounded up. */
export interface PolicyState {
  readonly name: string
  /** The most that `remaining` can be. */
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
}

/**
 * The states at `now` of the policies that an answer is about, from its `parts`. `all` is the state under all of them, which is
 * that of a single one.
 */
export function policyStatesOf(
  policies: readonly Policy[],
  parts: Answer['parts'],
  now: number,
  all: StateUnderAll,
): readonly PolicyState[] {
  return policies.map((policy, i) => ({
    name: policy.name,
    limit: policy.capacity,
    windowMs: policy.windowMs,
    remaining: parts ? parts[3 * i + 1]! : all.remaining,
    retryAfterMs: !parts || all.allowed ? all.retryAfterMs : wholeMs(parts[3 * i]! - now),
    resetAfterMs: parts ? wholeMs(parts[3 * i + 2]! - now) : all.resetAfterMs,
  }))
}

interface StateUnderAll {
  readonly allowed: boolean
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
}
