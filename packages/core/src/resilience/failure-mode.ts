import { expected, PolicyError, type StoreFailure } from '../values/errors.js'
import type { Answer } from '../stores/store.js'

/**
 * What a call gets when the store cannot decide.
 * - 'local': the same policies decide in this process, on what it has seen itself. With `share: n`, limits and
 *   capacities are divided by the number of processes, down to 1, so that together they stay below the limit.
 * - 'allow': it passes.
 * - 'deny': it is denied, told apart from a limit by a `reason` that is undefined; in HTTP by 503.
 * - 'throw': it rejects with StoreError.
 */
export type FailureMode =
  'local' | { readonly mode: 'local'; readonly share?: number } | 'allow' | 'deny' | 'throw'

export interface ParsedFailureMode {
  readonly mode: 'local' | 'allow' | 'deny' | 'throw'
  readonly share: number
}

const MODES: readonly unknown[] = ['local', 'allow', 'deny', 'throw']

/** @throws {PolicyError} INVALID_OPTION. */
export function parseFailureMode(given: FailureMode = 'local'): ParsedFailureMode {
  const { mode, share = 1 } = typeof given === 'object' && given !== null ? given : { mode: given }
  if (!MODES.includes(mode) || (mode !== 'local' && mode !== given)) {
    const bound = "onStoreError must be 'local', { mode: 'local', share }, 'allow', 'deny' or 'throw'"
    throw expected(PolicyError, 'INVALID_OPTION', bound, given)
  }
  if (!(Number.isInteger(share) && share >= 1 && share <= MOST_PROCESSES)) {
    const bound = `share must be the number of processes, a whole number from 1 to ${MOST_PROCESSES}`
    throw expected(PolicyError, 'INVALID_OPTION', bound, share)
  }
  return { mode, share }
}

/** The answer where nobody decided. A caller that is denied may try again in a second. */
export function undecided(why: StoreFailure, allowed: boolean): Answer {
  const at = allowed ? 0 : RETRY_AFTER
  const degraded = { why, allowed, by: undefined }
  return {
    now: 0,
    at,
    reason: undefined,
    binding: 0,
    remaining: 0,
    resetAt: at,
    parts: undefined,
    booking: undefined,
    degraded,
  }
}

const MOST_PROCESSES = 1_000_000
const RETRY_AFTER = 1_000_000
