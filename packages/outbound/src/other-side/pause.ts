import type { OutboundReply } from '../request.js'
import { quotasOf } from './quotas.js'
import { httpDateIn, numberIn } from './values.js'

/**
 * Milliseconds for which a reply asks for a pause: by `Retry-After` if it is a refusal, otherwise by a quota that is used up.
 * 0 if it asks for none; undefined for a 429 that does not say how long. The other side chooses the number: bound it.
 */
export function pauseMs(reply: OutboundReply, now = Date.now()): number | undefined {
  const { status } = reply
  // Dates are relative to the sender's clock, which `Date` shows.
  const theirs = httpDateIn(reply.header('date'))
  const otherSideNow = Number.isNaN(theirs) ? now : theirs
  const asked = REFUSALS.has(status) ? retryAfterMs(reply, otherSideNow) : NaN
  if (asked > 0) return asked
  const quotas = quotasOf(reply, otherSideNow)
  const usedUp = quotas.filter(({ remaining }) => remaining < 1)
  // A 429 although units are left: the call cost more than those.
  const telling = usedUp.length > 0 || status !== 429 ? usedUp : quotas
  const resets = telling.map(({ resetMs }) => resetMs).filter((ms) => ms > 0)
  if (resets.length > 0) return Math.max(...resets)
  return status === 429 && Number.isNaN(asked) ? undefined : 0
}

/**
 * Milliseconds for which a reply asks for a pause, as `limitFetch` reads it; for `pauseOf` of a queue. 0 if it asks for none;
 * undefined for a 429 that does not say how long.
 */
export function pauseMsOf(reply: OutboundReply): number | undefined {
  return pauseMs(reply)
}

/**
 * Whether a reply refuses the call because of a limit. A 403, which GitHub sends for this, has other meanings too, so it
 * counts only if it asks for a pause.
 */
export function isRefusal({ status }: OutboundReply, askedMs: number | undefined): boolean {
  return status === 403 ? askedMs !== undefined && askedMs > 0 : REFUSALS.has(status)
}

/** Whether the other side forbids a retry, as OpenAI, Anthropic and Stripe do when one would fail again. */
export function forbidsRetry(reply: OutboundReply): boolean {
  return reply.header('x-should-retry') === 'false' || reply.header('stripe-should-retry') === 'false'
}

/**
 * Milliseconds that a refusal asks to wait: by the headers of Azure and OpenAI in milliseconds, otherwise by `Retry-After`
 * (RFC 9110, 10.2.3), seconds or a date. NaN if all are absent or invalid, 0 or less for an instant that has passed.
 */
function retryAfterMs(reply: OutboundReply, otherSideNow: number): number {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const ms = numberIn(reply.header(name))
    if (ms > 0) return ms
  }
  const value = reply.header('retry-after')
  const seconds = numberIn(value)
  return Number.isNaN(seconds) ? httpDateIn(value) - otherSideNow : seconds * 1000
}

/** Anthropic and others reply with 529 when they are overloaded. */
const REFUSALS = new Set([403, 429, 503, 529])
