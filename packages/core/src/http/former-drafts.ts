import { mostRestrictive, type RequestDecision } from './decisions.js'
import type { SetHeader } from './platform.js'
import { reportedPolicies } from './reported-policies.js'
import { retryAfterSeconds, wholeSeconds } from './seconds.js'

/*
 * Drafts 6 and 7 of draft-ietf-httpapi-ratelimit-headers, which older clients read. Both list the quotas in RateLimit-Policy
 * without their names, and have room for one limiter beside it: the most restrictive one.
 */

/** Draft 6: RateLimit-Limit, -Remaining and -Reset, a header each. */
export function writeDraft6(all: readonly RequestDecision[], set: SetHeader): void {
  const { limit, remaining, reset } = stateOf(all)
  set('RateLimit-Policy', quotas(all))
  set('RateLimit-Limit', limit)
  set('RateLimit-Remaining', remaining)
  if (reset) set('RateLimit-Reset', reset)
}

/** Draft 7: the same in one header, RateLimit. */
export function writeDraft7(all: readonly RequestDecision[], set: SetHeader): void {
  const { limit, remaining, reset } = stateOf(all)
  set('RateLimit-Policy', quotas(all))
  set('RateLimit', `limit=${limit}, remaining=${remaining}${reset ? `, reset=${reset}` : ''}`)
}

/** The drafts require a window in whole seconds. Rounding up never states more than the rate that is allowed. */
function quotas(all: readonly RequestDecision[]): string {
  return reportedPolicies(all)
    .map(({ policy }) => `${policy.limit};w=${wholeSeconds(policy.windowMs)}`)
    .join(', ')
}

/**
 * `reset` is when the quota is full again or, on a denial, the same as Retry-After, which both drafts ask for; undefined if
 * no wait helps.
 */
function stateOf(all: readonly RequestDecision[]) {
  const decision = mostRestrictive(all)
  const seconds = decision.allowed ? wholeSeconds(decision.resetAfterMs) : retryAfterSeconds(decision)
  const reset = seconds !== undefined && Number.isFinite(seconds) ? String(seconds) : undefined
  return { limit: String(decision.limit), remaining: String(decision.remaining), reset }
}
