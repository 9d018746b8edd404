import type { Decision } from '../limiter/decision.js'
import type { Counted } from './counted.js'
import { retryAfterSeconds } from './headers.js'
import { quotas } from './quota.js'

/** Problem details (RFC 9457), of the types that draft-ietf-httpapi-ratelimit-headers-11 section 5 names. */
export type Problem = Readonly<Record<string, unknown>>

/** How a denial is answered. */
export interface Denial {
  readonly status: 429 | 503
  /** Seconds; undefined where waiting does not help. */
  readonly retryAfter: number | undefined
  readonly problem: Problem
}

export const PROBLEM_TYPE = 'application/problem+json'

/**
 * The answer to a request that `denied` did not let pass. Where nobody could decide the caller has done nothing wrong:
 * 503 and another try in a second, not 429. What was decided in this process for want of the store is a limit like any.
 */
export function denialOf(denied: Decision, all: readonly Counted[]): Denial {
  if (denied.degraded !== undefined && denied.reason === undefined) return REDUCED_CAPACITY
  const retryAfter = retryAfterSeconds(denied)
  const problem = {
    type: `${TYPES}#quota-exceeded`,
    title: 'Quota Exceeded',
    status: 429,
    detail: detailOf(retryAfter),
    'violated-policies': violated(denied, all),
  }
  return { status: 429, retryAfter, problem }
}

const TYPES = 'https://iana.org/assignments/http-problem-types'

const REDUCED_CAPACITY: Denial = {
  status: 503,
  retryAfter: 1,
  problem: {
    type: `${TYPES}#temporary-reduced-capacity`,
    title: 'Temporary Reduced Capacity',
    status: 503,
    detail: 'Requests cannot be counted for now. Try again in 1 second.',
  },
}

function detailOf(retryAfter: number | undefined): string {
  if (retryAfter === undefined) return 'This request takes more than the quota ever allows at once.'
  return `Too many requests. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
}

/** Named as in the RateLimit headers. A ban or a pause violates none. */
function violated(denied: Decision, all: readonly Counted[]): readonly string[] {
  if (denied.reason === 'blocked' || denied.reason === 'held') return []
  return quotas(all)
    .filter(({ state }) => state.retryAfterMs > 0)
    .map(({ name }) => name)
}
