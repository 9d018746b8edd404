// The limiter that one would write by hand, and what all servers here have in common.
import { gcra } from '../memory/contenders/floors.js'

/** @typedef {import('../contender.js').Limit} Limit */

/**
 * Decides about a caller, with the three headers that the adapters of Sluice set. A denial comes with the same problem
 * document too, as a longer answer is more work.
 * @param {Limit} limit
 */
export function handWritten(limit) {
  const decide = gcra(limit)
  return (/** @type {string} */ caller) => {
    const { allowed, remaining, resetAfterMs, retryAfterMs } = decide(caller)
    return {
      limit: String(limit.limit),
      remaining: String(remaining),
      reset: String(Math.ceil((Date.now() + resetAfterMs) / 1000)),
      denial: allowed ? undefined : denialFor(Math.max(1, Math.ceil(retryAfterMs / 1000))),
    }
  }
}

/** @param {number} seconds */
function denialFor(seconds) {
  const problem = {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Quota Exceeded',
    status: 429,
    detail: `Too many requests. Try again in ${seconds} seconds.`,
    'violated-policies': ['default'],
  }
  return { retryAfter: String(seconds), problem }
}

export const BODY = 'Hello'
export const PROBLEM = 'application/problem+json'
