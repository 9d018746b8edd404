import type { Counted } from './counted.js'
import type { SetHeader } from './platform.js'
import { type Quota, quotas } from './quota.js'
import { wholeSeconds } from './seconds.js'

/*
 * draft-ietf-httpapi-ratelimit-headers-11 (23 May 2026), sections 3 and 4: two lists of structured fields
 * (RFC 9651), one item a policy. What a later draft changes becomes a file beside this one.
 */

/** Writes RateLimit-Policy, what is promised, and RateLimit, what is left of it. */
export function writeIetfDraft11(all: readonly Counted[], set: SetHeader): void {
  const list = quotas(all)
  set('RateLimit-Policy', list.map(policyItem).join(', '))
  set('RateLimit', list.map(limitItem).join(', '))
}

function policyItem({ name, policy }: Quota): string {
  // The draft has no fractions of a second, and a rounded window would state another rate.
  const window = policy.windowMs % 1000 === 0 ? `;w=${policy.windowMs / 1000}` : ''
  return `${quoted(name)};q=${integer(policy.limit)}${window}`
}

/** `t` is when the quota is full again or, on a policy that refuses, when it will pass; left out where it never will. */
function limitItem({ name, state }: Quota): string {
  const seconds = wholeSeconds(state.retryAfterMs > 0 ? state.retryAfterMs : state.resetAfterMs)
  const time = Number.isFinite(seconds) ? `;t=${integer(seconds)}` : ''
  return `${quoted(name)};r=${integer(state.remaining)}${time}`
}

/** A String of RFC 9651. Names are printable ASCII, which is all that it can hold. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}

/** The largest Integer of RFC 9651. A parser must drop the whole field where it meets a larger one. */
const LARGEST_INTEGER = 999_999_999_999_999

function integer(value: number): string {
  return String(Math.min(value, LARGEST_INTEGER))
}
