import type { Policy, View } from '../../algorithms/contract/policy.js'
import type { Answer, Booking, Reason } from '../store.js'
import type { Cursor } from './cursor.js'

/** One class for every answer, because V8 gives object literals at different places different hidden classes. */
export class MemoryAnswer implements Answer {
  constructor(
    readonly now: number,
    readonly at: number,
    readonly reason: Reason | undefined,
    readonly binding: number,
    readonly remaining: number,
    readonly resetAt: number,
    readonly parts: readonly number[] | undefined,
    readonly booking: Booking | undefined,
  ) {}
}

/**
 * The answer for the key that the cursor is on. `barredUntil` is the end of its block and hold, `opensAt` the later of that and
 * its last booking. Before `opensAt`, `remaining` is 0, and `resetAt` comes from the state as it will be then.
 */
export function answerOf(
  cursor: Cursor,
  policies: readonly Policy[],
  now: number,
  at: number,
  reason: Reason | undefined,
  binding: number,
  barredUntil: number,
  opensAt: number,
  booking: Booking | undefined,
): Answer {
  const parts: number[] | undefined = policies.length > 1 ? [] : undefined
  let least = Infinity
  let bound = binding
  let resetAt = barredUntil
  for (let i = 0; i < policies.length; i++) {
    const policy = policies[i]!
    policy.algorithm.view(cursor.states[i]!, policy, Math.max(now, opensAt), view)
    if (opensAt > now) view.remaining = 0
    if (view.remaining < least) {
      least = view.remaining
      if (reason === undefined) bound = i
    }
    if (view.resetAt > resetAt) resetAt = view.resetAt
    parts?.push(cursor.instants[i]!, view.remaining, view.resetAt)
  }
  return new MemoryAnswer(now, at, reason, bound, least, resetAt, parts, booking)
}

const view: View = { remaining: 0, resetAt: 0 }
