import type { Reply } from '../call.js'
import { httpDate } from './instant.js'
import { rateLimitQuotas } from './ratelimit.js'
import { retryAfterMs } from './retry-after.js'
import { xRateLimitQuotas } from './x-ratelimit.js'

/**
 * Milliseconds for which a reply asks not to be called: by `Retry-After` where it refused, else by a `RateLimit` or
 * `X-RateLimit` quota that is used up. 0 where nothing asks for it; undefined for a 429 that does not say how long.
 * It is as large as the other side wants: bound it.
 */
export function pauseMs(reply: Reply, now = Date.now()): number | undefined {
  const { status } = reply
  // A date is meant on the clock of who wrote it, which `Date` shows.
  const theirs = httpDate(reply.header('date'))
  const otherSideNow = Number.isNaN(theirs) ? now : theirs
  const told = status === 429 || status === 503 ? retryAfterMs(reply, otherSideNow) : NaN
  if (told > 0) return told
  const quotas = [...rateLimitQuotas(reply), ...xRateLimitQuotas(reply, otherSideNow)]
  const usedUp = quotas.filter(({ remaining }) => remaining < 1)
  // A refusal with something left: the call cost more than that.
  const telling = usedUp.length > 0 || status !== 429 ? usedUp : quotas
  const resets = telling.map(({ resetMs }) => resetMs).filter((ms) => ms > 0)
  if (resets.length > 0) return Math.max(...resets)
  return status === 429 && Number.isNaN(told) ? undefined : 0
}
