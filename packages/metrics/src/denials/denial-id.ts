import { PolicyError } from '@sluice/core'
import { createHmac } from 'node:crypto'

/**
 * The id of the denials of one key on one day of UTC: 20 hex digits. They are the first 80 bits of an HMAC-SHA256, the fewest that
 * RFC 2104 recommends. `storedKey` is the key as stores keep it, and `at` an instant of the day, in milliseconds since the epoch. A
 * caller who knows his own key and its id can try out secrets, so `secret` must be too long to be guessed.
 * @throws {PolicyError} INVALID_OPTION for a secret of less than 32 characters.
 * @example
 * import { denialId } from '@sluice/metrics'
 * const secret = 'b7e151628aed2a6abf7158809cf4f3c7' // openssl rand -hex 16
 * denialId(secret, { limiter: 'api', storedKey: 'user:42', at: Date.now() })
 */
export function denialId(
  secret: string,
  { limiter, storedKey, at }: { readonly limiter: string; readonly storedKey: string; readonly at: number },
): string {
  if (typeof secret !== 'string' || secret.length < 32) {
    // No message shows a secret, or a part of it.
    const got = typeof secret === 'string' ? secret.length : `a value of type ${typeof secret}`
    throw new PolicyError('INVALID_OPTION', `secret must be a text of 32 characters or more, got ${got}`)
  }
  const hmac = createHmac('sha256', secret).update(JSON.stringify([limiter, storedKey, dayOf(at)]))
  return hmac.digest('hex').slice(0, 20)
}

/** The number of the day (UTC) since the epoch in which an instant lies; the instant is in milliseconds since the epoch. */
export function dayOf(at: number): number {
  return Math.floor(at / 86_400_000)
}
