import { expected, PolicyError } from '../values/errors.js'
import { mostRestrictive, type RequestDecision } from './decisions.js'
import { writeDraft6, writeDraft7 } from './former-drafts.js'
import type { HeaderNames } from './header-names.js'
import type { SetHeader } from './platform.js'
import { type ReportedPolicy, reportedPolicies } from './reported-policies.js'
import { wholeSeconds } from './seconds.js'

/** A set of headers that reports limits to clients. 'ietf' is the newest draft that is supported. */
export type HeaderFormat = 'x-ratelimit' | 'ietf' | 'draft-6' | 'draft-7'

export interface HeaderOptions {
  /**
   * The headers of every response, allowed or denied; of the IETF's drafts at most one, because all of them set
   * RateLimit-Policy. false leaves only Retry-After on denials.
   * @default 'x-ratelimit'
   */
  readonly headers?: HeaderFormat | readonly HeaderFormat[] | false
  /**
   * Other names for single headers, by their usual names; false omits a header.
   * @default {}
   * @example
   * { 'X-RateLimit-Limit': 'X-Rate-Limit-Limit', 'Retry-After': false }
   */
  readonly headerNames?: HeaderNames
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
  const formats: readonly HeaderFormat[] = headers === false ? [] : [headers].flat()
  const drafts = formats.filter((format) => format !== 'x-ratelimit')
  if (!drafts.every((draft) => Object.hasOwn(DRAFTS, draft))) {
    const what = "headers must be 'x-ratelimit', 'ietf', 'draft-6', 'draft-7', a list of them or false"
    throw expected(PolicyError, 'INVALID_OPTION', what, headers)
  }
  if (new Set(drafts).size > 1) {
    const what = `${drafts.join(' and ')} exclude each other: both set RateLimit-Policy`
    throw new PolicyError('INVALID_OPTION', what)
  }
  const xRateLimit = formats.includes('x-ratelimit')
  const writeDraft = drafts[0] && DRAFTS[drafts[0]]
  if (!xRateLimit && !writeDraft) return undefined
  return function writeHeaders(all, set) {
    const shown = all.length === 1 ? all : all.filter(({ inHeaders }) => inHeaders)
    if (xRateLimit) writeXRateLimit(shown, resetAs, set)
    if (writeDraft) writeDraft(shown, set)
  }
}

/** How each draft of the IETF is written. */
const DRAFTS: Record<Exclude<HeaderFormat, 'x-ratelimit'>, WriteHeaders> = {
  ietf: writeIetfDraft11,
  'draft-6': writeDraft6,
  'draft-7': writeDraft7,
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
