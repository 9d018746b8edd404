import { type Decision, policiesOf } from '../limiter/decision.js'
import type { RequestDecision } from './decisions.js'
import type { Problem } from './platform.js'
import { reportedPolicies } from './reported-policies.js'
import { retryAfterSeconds } from './seconds.js'

/** The response to a denied request. */
export interface DenialResponse {
  readonly status: 429 | 503
  /** Seconds; undefined if no wait helps. */
  readonly retryAfter: number | undefined
  readonly problem: Problem
  /** `problem` as JSON. */
  readonly text: string
}

/** What a guard returns about a request that may not pass. The request has been answered by then. */
export interface Denied {
  /** What `onDenied` or the platform's `send` returned. */
  readonly answer: unknown
  /** Set if the caller hung up before it could be identified. Nothing was charged, and no response is needed. */
  readonly hungUp?: true
  /** Set if `deny` matched the caller. Nothing was charged, and there is no decision. */
  readonly forbidden?: true
}

export const PROBLEM_TYPE = 'application/problem+json'

/**
 * The response to a request that `denied` did not let pass. If the store failed and no policy denied the request, the
 * caller has done nothing wrong: 503, to be retried in a second. A denial by the local policies in an outage is a 429.
 */
export function denialResponse(denied: Decision, all: readonly RequestDecision[]): DenialResponse {
  if (denied.reason === 'degraded') return REDUCED_CAPACITY
  const retryAfter = retryAfterSeconds(denied)
  const detail = detailOf(retryAfter)
  const names = violatedPolicies(denied, all)
  const text = `${QUOTA_TEXT}"detail":"${detail}","violated-policies":${JSON.stringify(names)}}`
  return { status: 429, retryAfter, problem: { ...QUOTA_EXCEEDED, detail, 'violated-policies': names }, text }
}

const TYPES = 'https://iana.org/assignments/http-problem-types'

const QUOTA_EXCEEDED = { type: `${TYPES}#quota-exceeded`, title: 'Quota Exceeded', status: 429 }

/** The part that every denial begins with, up to its last comma: the details need no escapes. */
const QUOTA_TEXT = `${JSON.stringify(QUOTA_EXCEEDED).slice(0, -1)},`

const CAPACITY_REDUCED = {
  type: `${TYPES}#temporary-reduced-capacity`,
  title: 'Temporary Reduced Capacity',
  status: 503,
  detail: 'Requests cannot be counted for now. Try again in 1 second.',
}

/** The response to a caller in `deny`. */
export const FORBIDDEN = {
  type: 'about:blank',
  title: 'Forbidden',
  status: 403,
  detail: 'Requests from this client are not accepted.',
} satisfies Problem

/** FORBIDDEN as JSON. */
export const FORBIDDEN_TEXT = JSON.stringify(FORBIDDEN)

const REDUCED_CAPACITY: DenialResponse = {
  status: 503,
  retryAfter: 1,
  problem: CAPACITY_REDUCED,
  text: JSON.stringify(CAPACITY_REDUCED),
}

function detailOf(retryAfter: number | undefined): string {
  if (retryAfter === undefined) return 'This request takes more than the quota ever allows at once.'
  return `Too many requests. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
}

/** Names as in the RateLimit headers. A block or a hold violates no policy. */
function violatedPolicies(denied: Decision, all: readonly RequestDecision[]): readonly string[] {
  if (denied.reason === 'blocked' || denied.reason === 'held') return []
  if (all.length === 1 && policiesOf(denied).length === 1) return [denied.limiter]
  return reportedPolicies(all)
    .filter(({ state }) => state.retryAfterMs > 0)
    .map(({ name }) => name)
}
