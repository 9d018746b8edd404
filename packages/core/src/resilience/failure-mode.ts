import { StoreError } from '../errors.js'
import type { Answer } from '../stores/store.js'

/** What a call gets when the store cannot decide: it passes, it is denied, or it rejects with the StoreError. */
export type FailureMode = 'allow' | 'deny' | 'throw'

export const FAILURE_MODES: readonly FailureMode[] = ['allow', 'deny', 'throw']

/** A set-up or an order of calls that no waiting mends is always thrown. */
const THROWN = new Set(['CLOSED', 'CLIENT_MISSING'])

/** How long a caller is told to wait for a store that may be back by then, in microseconds. */
const RETRY_AFTER = 1_000_000

/** The answer in place of a failed one, marked as such; or throws the failure again. */
export function answerInstead(failure: unknown, mode: FailureMode): Answer {
  if (mode === 'throw' || !(failure instanceof StoreError) || THROWN.has(failure.code)) throw failure
  const allowed = mode === 'allow'
  const at = allowed ? 0 : RETRY_AFTER
  return {
    now: 0,
    at,
    reason: undefined,
    binding: 0,
    remaining: 0,
    resetAt: at,
    parts: undefined,
    booking: undefined,
    degraded: { why: failure.code.replace('STORE_', '').toLowerCase(), allowed },
  }
}
