import type { Reply } from '../call.js'
import { quotasOf } from './quotas.js'
import { httpDateIn, numberIn } from './values.js'

/**
 * Milliseconds for which a reply asks not to be called: by `Retry-After` where it refused, else by a quota that is used
 * up. 0 where nothing asks for it; undefined for a 429 that does not say how long. It is as large as the other side
 * wants: bound it.
 */
export function pauseMs(reply: Reply, now = Date.now()): number | undefined {
  const { status } = reply
  // A date is meant on the clock of who wrote it, which `Date` shows.
  const theirs = httpDateIn(reply.header('date'))
  const otherSideNow = Number.isNaN(theirs) ? now : theirs
  const asked = REFUSALS.has(status) ? retryAfterMs(reply, otherSideNow) : NaN
  if (asked > 0) return asked
  const quotas = quotasOf(reply, otherSideNow)
  const usedUp = quotas.filter(({ remaining }) => remaining < 1)
  // A refusal with something left: the call cost more than that.
  const telling = usedUp.length > 0 || status !== 429 ? usedUp : quotas
  const resets = telling.map(({ resetMs }) => resetMs).filter((ms) => ms > 0)
  if (resets.length > 0) return Math.max(...resets)
  return status === 429 && Number.isNaN(asked) ? undefined : 0
}

/**
 * Milliseconds for which a reply asks not to be called, as `limitFetch` reads it, for `pauseOf` of a queue: 0 where nothing
 * asks for it; undefined for a 429 that does not say how long.
 */
export function pauseMsOf(reply: Reply): number | undefined {
  return pauseMs(reply)
}

/**
 * Whether a reply refuses the call because there were too many: a 403 (as GitHub answers) only where it also asks for a
 * pause, as it has other meanings.
 */
export function isRefusal({ status }: Reply, askedMs: number | undefined): boolean {
  return status === 403 ? askedMs !== undefined && askedMs > 0 : REFUSALS.has(status)
}

/** Whether the other side forbids to send the call again, as OpenAI, Anthropic and Stripe do where it is of no use. */
export function forbidsRetry(reply: Reply): boolean {
  return reply.header('x-should-retry') === 'false' || reply.header('stripe-should-retry') === 'false'
}

/**
 * Milliseconds that a refusal asks to wait: by the headers of Azure and OpenAI that name them, else by `Retry-After`
 * (RFC 9110, 10.2.3), seconds or a date. NaN where all are absent or make no sense, 0 or less for a moment that passed.
 */
function retryAfterMs(reply: Reply, otherSideNow: number): number {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const ms = numberIn(reply.header(name))
    if (ms > 0) return ms
  }
  const value = reply.header('retry-after')
  const seconds = numberIn(value)
  return Number.isNaN(seconds) ? httpDateIn(value) - otherSideNow : seconds * 1000
}

/** 529 is what Anthropic and others answer when they are overloaded. */
const REFUSALS = new Set([403, 429, 503, 529])
