import type { Reply } from '../call.js'

/** What is left of a quota, and in how many milliseconds it is full again. */
export interface Quota {
  readonly remaining: number
  readonly resetMs: number
}

/**
 * The quotas of a `RateLimit` header: a list of items `"policy";r=50;t=30` (draft-ietf-httpapi-ratelimit-headers 08 to
 * 11; t in seconds). Items that do not say both are passed over.
 */
export function rateLimitQuotas(reply: Reply): readonly Quota[] {
  const value = reply.header('ratelimit') ?? ''
  return itemsOf(value).flatMap((item) => {
    const remaining = parameter(item, 'r')
    const seconds = parameter(item, 't')
    return remaining >= 0 && seconds >= 0 ? [{ remaining, resetMs: seconds * 1000 }] : []
  })
}

/** Splits at commas outside of quoted names, and leaves the quoted names out. */
function itemsOf(list: string): readonly string[] {
  return list.replace(/"(?:[^"\\]|\\.)*"/g, '').split(',')
}

function parameter(item: string, name: string): number {
  const match = new RegExp(`;\\s*${name}=(\\d{1,15})\\s*(?:;|$)`).exec(item)
  return match ? Number(match[1]) : NaN
}
