// The limiter that one would write by hand, and what all servers here have in common.
import { gcra } from '../memory/contenders/floors.js'

/** @typedef {import('../contender.js').Limit} Limit */

/**
 * Decides about a caller, and names the three headers and Retry-After as the adapters of Sluice do.
 * @param {Limit} limit
 */
export function handWritten(limit) {
  const decide = gcra(limit)
  return (/** @type {string} */ caller) => {
    const { allowed, remaining, resetAfterMs, retryAfterMs } = decide(caller)
    return {
      allowed,
      limit: String(limit.limit),
      remaining: String(remaining),
      reset: String(Math.ceil((Date.now() + resetAfterMs) / 1000)),
      retryAfter: String(Math.max(1, Math.ceil(retryAfterMs / 1000))),
    }
  }
}

export const BODY = 'Hello'
export const DENIAL = 'Too many requests'
