import type { Policy } from '../algorithms/contract/policy.js'
import { type Decision, policiesOf, type PolicyState } from '../limiter/decision.js'
import { expected, PolicyError } from '../values/errors.js'
import { mostRestrictive, mostRestrictiveOfEach, type RequestDecision } from './decisions.js'
import type { SetHeader } from './platform.js'

/** A set of headers that reports limits to clients. 'ietf' is the newest draft that is supported. */
export type HeaderFormat = 'x-ratelimit' | 'ietf'

export interface HeaderOptions {
  /**
   * The headers of every response, allowed or denied. false leaves only Retry-After on denials.
   * @default 'x-ratelimit'
   */
  readonly headers?: HeaderFormat | readonly HeaderFormat[] | false
  /**
   * X-RateLimit-Reset in seconds since 1970 ('epoch') or from now ('delta').
   * @default 'epoch'
   */
  readonly resetAs?: 'epoch' | 'delta'
}

/** Writes the headers of all limiters that have counted a request. */
export type WriteHeaders = (all: readonly RequestDecision[], set: SetHeader) => void

/**
 * Makes the function that writes the headers `options` ask for; undefined if they ask for none.
 * @throws {PolicyError} INVALID_OPTION for an unknown format.
 */
export function headerWriter(options: HeaderOptions): WriteHeaders | undefined {
  const { headers = 'x-ratelimit', resetAs = 'epoch' } = options
  if (resetAs !== 'epoch' && resetAs !== 'delta') {
    throw expected(PolicyError, 'INVALID_OPTION', "resetAs must be 'epoch' or 'delta'", resetAs)
  }
  const formats = headers === false ? [] : Array.isArray(headers) ? headers : [headers]
  if (!formats.every((format) => format === 'x-ratelimit' || format === 'ietf')) {
    const what = "headers must be 'x-ratelimit', 'ietf', both or false"
    throw expected(PolicyError, 'INVALID_OPTION', what, headers)
  }
  const xRateLimit = formats.includes('x-ratelimit')
  const ietf = formats.includes('ietf')
  if (!xRateLimit && !ietf) return undefined
  return function writeHeaders(all, set) {
    const shown = all.length === 1 ? all : all.filter(({ inHeaders }) => inHeaders)
    if (xRateLimit) writeXRateLimit(shown, resetAs, set)
    if (ietf) writeIetfDraft11(shown, set)
  }
}

/**
 * X-RateLimit-*, which no standard defines and most clients read. It has room for one limiter: the most restrictive one.
 * X-RateLimit-Reset is when its allowance is full again.
 */
function writeXRateLimit(all: readonly RequestDecision[], resetAs: 'epoch' | 'delta', set: SetHeader): void {
  const decision = mostRestrictive(all)
  const origin = resetAs === 'epoch' ? Date.now() : 0
  set('X-RateLimit-Limit', String(decision.limit))
  set('X-RateLimit-Remaining', String(decision.remaining))
  set('X-RateLimit-Reset', String(wholeSeconds(origin + decision.resetAfterMs)))
}

/*
 * draft-ietf-httpapi-ratelimit-headers-11 (23 May 2026), sections 3 and 4: two lists of structured fields (RFC 9651),
 * with one item for each policy. A later draft gets functions of its own.
 */

/** Writes RateLimit-Policy, which states the quotas, and RateLimit, which states what is left of them. */
function writeIetfDraft11(all: readonly RequestDecision[], set: SetHeader): void {
  const list = reportedPolicies(all)
  set('RateLimit-Policy', list.map(policyItem).join(', '))
  set('RateLimit', list.map(limitItem).join(', '))
}

function policyItem({ name, policy }: ReportedPolicy): string {
  // The draft has no fractions of a second, and a rounded window would state another rate.
  const window = policy.windowMs % 1000 === 0 ? `;w=${policy.windowMs / 1000}` : ''
  return `${quoted(name)};q=${integer(policy.limit)}${window}`
}

/** `t` is when the quota is full again or, on a policy that denies, when it would pass; left out if that is never. */
function limitItem({ name, state }: ReportedPolicy): string {
  const seconds = wholeSeconds(state.retryAfterMs > 0 ? state.retryAfterMs : state.resetAfterMs)
  const time = Number.isFinite(seconds) ? `;t=${integer(seconds)}` : ''
  return `${quoted(name)};r=${integer(state.remaining)}${time}`
}

/** A String of RFC 9651. Names are printable ASCII, which is all that it can hold. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}

/** The largest Integer of RFC 9651. A parser must discard the whole field if it meets a larger one. */
const LARGEST_INTEGER = 999_999_999_999_999

function integer(value: number): string {
  return String(Math.min(value, LARGEST_INTEGER))
}

/** One policy as it is reported to clients. */
export interface ReportedPolicy {
  /** The limiter's name, followed by the policy's if the limiter has several. Unique in a response. */
  readonly name: string
  readonly policy: Policy
  readonly state: PolicyState
}

/** The policies of all limiters that counted a request, each limiter once. */
export function reportedPolicies(all: readonly RequestDecision[]): readonly ReportedPolicy[] {
  const list: ReportedPolicy[] = []
  for (const decision of mostRestrictiveOfEach(all)) {
    const policies = policiesOf(decision)
    decision.policies.forEach((state, i) => {
      const name = policies.length === 1 ? decision.limiter : `${decision.limiter}-${state.name}`
      list.push({ name: uniqueName(name, list), policy: policies[i]!, state })
    })
  }
  return list
}

/** Two limiters may have the same name, for example the default; two items of a RateLimit list may not. */
function uniqueName(name: string, list: readonly ReportedPolicy[]): string {
  const isTaken = (candidate: string): boolean => list.some((reported) => reported.name === candidate)
  let candidate = name
  for (let i = 2; isTaken(candidate); i++) candidate = `${name}-${i}`
  return candidate
}

/**
 * Retry-After of a denial, in seconds; undefined if no wait helps. Never 0, which many clients read as "at once", and never
 * before the `t` of a policy that denies.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  const seconds = Math.max(1, wholeSeconds(decision.retryAfterMs))
  return Number.isFinite(seconds) ? seconds : undefined
}

/** Rounded up, so that a client that waits this long is never early. */
function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
