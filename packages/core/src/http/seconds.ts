import type { Decision } from '../limiter/decision.js'

/**
 * Retry-After of a denial, in seconds; undefined if no wait helps. Never 0, which many clients read as "at once", and never
 * before the `t` of a policy that denies.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  const seconds = Math.max(1, wholeSeconds(decision.retryAfterMs))
  return Number.isFinite(seconds) ? seconds : undefined
}

/** Rounded up, so that a client that waits this long is never early. */
export function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
