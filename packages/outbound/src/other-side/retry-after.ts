import type { Reply } from '../call.js'
import { httpDate } from './instant.js'

/**
 * Milliseconds that `Retry-After` (RFC 9110, 10.2.3) asks to wait, given in seconds or as a date; NaN where it is
 * absent or makes no sense, and 0 or less for a moment that has passed.
 */
export function retryAfterMs(reply: Reply, otherSideNow: number): number {
  const value = reply.header('retry-after')?.trim() ?? ''
  return /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : httpDate(value) - otherSideNow
}
