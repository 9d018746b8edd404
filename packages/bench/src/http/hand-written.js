// The limiter that one would write by hand, and what all servers here have in common.
import { GENEROUS } from '../contender.js'
import { gcra } from '../memory/contenders/floors.js'

/** @typedef {import('../contender.js').Limit} Limit */
/** @typedef {ReturnType<ReturnType<typeof gcra>>} Decision */

/**
 * Decides about a caller, and writes the headers that the adapters of Sluice set. A denial comes with the same problem
 * document too, as a longer answer is more work. Two limits are decided in one go, with the headers of the one that leaves
 * the caller less.
 * @param {import('./setups.js').Setup} setup
 * @param {Limit} limit
 */
export function handWritten(setup, limit) {
  const decide = setup === 'two limiters' ? decideTwo(gcra(GENEROUS), gcra(limit)) : gcra(limit)
  return { decide, write: setup === 'ietf' ? draft11(limit) : writeXRateLimit }
}

/** @param {ReturnType<typeof gcra>} one @param {ReturnType<typeof gcra>} other */
function decideTwo(one, other) {
  return (/** @type {string} */ caller) => {
    const first = one(caller)
    if (!first.allowed) return first
    const second = other(caller)
    return !second.allowed || second.remaining < first.remaining ? second : first
  }
}

/**
 * @template Res
 * @param {Decision} decision
 * @param {Res} res
 * @param {(res: Res, name: string, value: string) => unknown} set
 */
function writeXRateLimit({ limit, remaining, resetAfterMs }, res, set) {
  set(res, 'X-RateLimit-Limit', String(limit))
  set(res, 'X-RateLimit-Remaining', String(remaining))
  set(res, 'X-RateLimit-Reset', String(Math.ceil((Date.now() + resetAfterMs) / 1000)))
}

/** @param {Limit} limit @returns {typeof writeXRateLimit} */
function draft11({ limit, windowMs }) {
  const policy = `"default";q=${limit};w=${windowMs / 1000}`
  return ({ remaining, retryAfterMs, resetAfterMs }, res, set) => {
    set(res, 'RateLimit-Policy', policy)
    const seconds = Math.ceil((retryAfterMs || resetAfterMs) / 1000)
    set(res, 'RateLimit', `"default";r=${remaining};t=${seconds}`)
  }
}

/**
 * Writes the headers of a denial, beside those of the limit. Returns what the request is answered.
 * @template Res
 * @param {Decision} decision
 * @param {Res} res
 * @param {(res: Res, name: string, value: string) => unknown} set
 */
export function deny({ retryAfterMs }, res, set) {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  set(res, 'Cache-Control', 'no-store')
  set(res, 'Retry-After', String(seconds))
  set(res, 'Content-Type', 'application/problem+json')
  return {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Quota Exceeded',
    status: 429,
    detail: `Too many requests. Try again in ${seconds} seconds.`,
    'violated-policies': ['default'],
  }
}

export const BODY = 'Hello'
