import type { Decision, Policy, PolicyState } from '@sluice/core'
import { policiesOf } from '@sluice/core/internal'
import {
  mostRestrictive,
  mostRestrictiveOfEach,
  type RequestDecision,
  retryAfterSeconds,
  wholeSeconds,
} from './decisions.js'
import type { SetHeader } from './platform.js'

/*
 * draft-ietf-httpapi-ratelimit-headers-11 (23 May 2026), sections 3 and 4: two lists of structured fields (RFC 9651),
 * with one item for each policy. A later draft gets functions of its own.
 */

/**
 * Writes the headers of draft 11: RateLimit-Policy, which states the quotas of all policies, and RateLimit, which states
 * what is left of each.
 */
export function writeDraft11<Res>(all: readonly RequestDecision[], res: Res, set: SetHeader<Res>): void {
  const list = reportedPolicies(all)
  set(res, 'RateLimit-Policy', listOf(list, policyItem))
  set(res, 'RateLimit', listOf(list, limitItem))
}

/** The value of a header that lists policies: the text that `item` makes of each, with commas between. */
function listOf(list: readonly ReportedPolicy[], item: (reported: ReportedPolicy) => string): string {
  return list.length === 1 ? item(list[0]!) : list.map(item).join(', ')
}

/** A policy as an item of RateLimit-Policy: its name, quota and window. */
function policyItem({ name, policy }: ReportedPolicy): string {
  return textsOf(name, policy).item
}

/**
 * The texts about a policy that are the same in all responses: its quoted name, and its item of RateLimit-Policy with the
 * quota (`q`) and the window (`w`). They are made once and kept with the policy, and made anew if it is reported by
 * another name.
 */
function textsOf(name: string, policy: Policy) {
  const known = TEXTS.get(policy)
  if (known?.name === name) return known
  // The draft has no fractions of a second, and a rounded window would state another rate. Periods of a calendar differ in length.
  const window = !policy.calendar && policy.windowMs % 1000 === 0 ? `;w=${policy.windowMs / 1000}` : ''
  const texts = { name, quoted: quoted(name), item: `${quoted(name)};q=${integer(policy.limit)}${window}` }
  TEXTS.set(policy, texts)
  return texts
}

const TEXTS = new WeakMap<Policy, { readonly name: string; readonly quoted: string; readonly item: string }>()

/**
 * A policy's state as an item of the header RateLimit: its name, `r` with the units that are left, and `t` in whole
 * seconds, rounded up. `t` is when the call would pass, if the policy denies it, and otherwise when the quota is full
 * again; it is left out if that is never.
 */
function limitItem({ name, policy, state }: ReportedPolicy): string {
  const seconds = wholeSeconds(state.retryAfterMs > 0 ? state.retryAfterMs : state.resetAfterMs)
  const time = Number.isFinite(seconds) ? `;t=${integer(seconds)}` : ''
  return `${textsOf(name, policy).quoted};r=${integer(state.remaining)}${time}`
}

/**
 * A text as a String of RFC 9651 (structured fields): in quotes, with quotes and backslashes escaped. Names are printable
 * ASCII, which is all that it can hold.
 */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}

/** The largest Integer of RFC 9651. A parser must discard the whole field if it meets a larger one. */
const LARGEST_INTEGER = 999_999_999_999_999

/** A number as an Integer of RFC 9651, at most the largest that this may be. */
function integer(value: number): string {
  return String(Math.min(value, LARGEST_INTEGER))
}

/*
 * Drafts 6 and 7 of draft-ietf-httpapi-ratelimit-headers, which older clients read. Both list the quotas in RateLimit-Policy
 * without their names, and have room for one limiter beside it: the most restrictive one.
 */

/**
 * Writes the headers of draft 6: RateLimit-Policy with the quotas of all policies, and RateLimit-Limit, -Remaining and
 * -Reset of the most restrictive decision, for which alone there is room. -Reset is left out if no wait helps.
 */
export function writeDraft6<Res>(all: readonly RequestDecision[], res: Res, set: SetHeader<Res>): void {
  const { limit, remaining, reset } = stateOf(all)
  set(res, 'RateLimit-Policy', quotas(all))
  set(res, 'RateLimit-Limit', limit)
  set(res, 'RateLimit-Remaining', remaining)
  if (reset) set(res, 'RateLimit-Reset', reset)
}

/**
 * Writes the headers of draft 7: RateLimit-Policy with the quotas of all policies, and RateLimit with limit, remaining
 * and reset of the most restrictive decision, for which alone there is room.
 */
export function writeDraft7<Res>(all: readonly RequestDecision[], res: Res, set: SetHeader<Res>): void {
  const { limit, remaining, reset } = stateOf(all)
  set(res, 'RateLimit-Policy', quotas(all))
  set(res, 'RateLimit', `limit=${limit}, remaining=${remaining}${reset ? `, reset=${reset}` : ''}`)
}

/**
 * The policies of all limiters as drafts 6 and 7 list them in RateLimit-Policy: limit and window, without names. Windows
 * have to be whole seconds there; they are rounded up, which never states more than the rate that is allowed. Those of a calendar,
 * which differ in length, are left out.
 */
function quotas(all: readonly RequestDecision[]): string {
  return reportedPolicies(all)
    .map(({ policy: { limit, windowMs, calendar } }) =>
      calendar ? `${limit}` : `${limit};w=${wholeSeconds(windowMs)}`,
    )
    .join(', ')
}

/**
 * The limit, what is left and the reset of the most restrictive decision, as texts of headers. `reset` is in seconds:
 * until the quota is full again or, on a denial, the same as Retry-After, as both drafts ask; undefined if no wait helps.
 */
function stateOf(all: readonly RequestDecision[]) {
  const decision = mostRestrictive(all)
  const seconds = decision.allowed ? wholeSeconds(decision.resetAfterMs) : retryAfterSeconds(decision)
  const reset = seconds !== undefined && Number.isFinite(seconds) ? String(seconds) : undefined
  return { limit: String(decision.limit), remaining: String(decision.remaining), reset }
}

/** One policy as it is reported to clients. */
export interface ReportedPolicy {
  /** The limiter's name, followed by the policy's if the limiter has several. Unique in a response. */
  readonly name: string
  readonly decision: Decision
  readonly policy: Policy
  readonly state: PolicyState
}

/**
 * The policies of all limiters that counted a request, with the names that headers give them: the limiter's name, and
 * behind it the policy's if the limiter has several. A limiter that counted the request several times is listed once,
 * with its most restrictive decision.
 */
export function reportedPolicies(all: readonly RequestDecision[]): readonly ReportedPolicy[] {
  const list: ReportedPolicy[] = []
  for (const decision of mostRestrictiveOfEach(all)) {
    const [policies, states] = [policiesOf(decision), decision.policies]
    for (let i = 0; i < policies.length; i++) {
      const state = states[i]!
      const name = policies.length === 1 ? decision.limiter : `${decision.limiter}-${state.name}`
      list.push({ name: uniqueName(name, list), decision, policy: policies[i]!, state })
    }
  }
  return list
}

/**
 * Returns `name`, or if the list has it already, the name with the first free number from 2 on behind it. Two limiters
 * may have the same name, for example the default, but two items of a RateLimit list may not.
 */
function uniqueName(name: string, list: readonly ReportedPolicy[]): string {
  if (list.length === 0) return name
  const isTaken = (candidate: string): boolean => list.some((reported) => reported.name === candidate)
  let candidate = name
  for (let i = 2; isTaken(candidate); i++) candidate = `${name}-${i}`
  return candidate
}
