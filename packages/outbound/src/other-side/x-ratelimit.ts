import type { Reply } from '../call.js'
import type { Quota } from './ratelimit.js'

/**
 * The quota of `X-RateLimit-Remaining` and `X-RateLimit-Reset`. Nobody standardized them: the reset is told as seconds
 * from now or as seconds (some: milliseconds) since 1970, and its size says which.
 */
export function xRateLimitQuotas(reply: Reply, otherSideNow: number): readonly Quota[] {
  const remaining = numberOf(reply.header('x-ratelimit-remaining'))
  const reset = numberOf(reply.header('x-ratelimit-reset'))
  const resetMs =
    reset >= MILLISECONDS ? reset - otherSideNow : reset >= EPOCH ? reset * 1000 - otherSideNow : reset * 1000
  return resetMs > 0 ? [{ remaining, resetMs }] : []
}

/** Seconds since 1970 are above this since 2001, and a reset in that many seconds would be 31 years away. */
const EPOCH = 1e9
/** As seconds this would be in the year 5138. */
const MILLISECONDS = 1e11

function numberOf(text: string | undefined): number {
  return text !== undefined && /^\s*\d{1,15}(\.\d{1,9})?\s*$/.test(text) ? Number(text) : NaN
}
