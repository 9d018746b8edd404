import { type Leasing, noEarlierEnd, type Policy } from '../contract/policy.js'

/** whole: units that are served in a span of one window were booked in a span that is longer by the ttl. */
export const wholeLeasing: Leasing = {
  book: (policy, ttlMs) => policy.with({ window: longer(policy, ttlMs, 1000) }),
  end: noEarlierEnd,
}

/**
 * weighted: units that are served in a span of length s were booked in a span of s + ttl, which admits at most
 * limit' * (1 + (s + ttl) / window') with window' = window + ttl. That does not exceed limit * (1 + s / window) for
 * limit' = limit * window' / (window' + ttl).
 */
export const fadingLeasing: Leasing = {
  book(policy, ttlMs) {
    const parts = policy.windowMs + ttlMs > 3_600_000 ? 1 : 1000
    const window = longer(policy, ttlMs, parts)
    const limit = Number((BigInt(policy.limit) * BigInt(window)) / BigInt(window + ttlMs))
    return limit < 1 ? undefined : policy.with({ limit, window })
  },
  end: noEarlierEnd,
}

/** The window longer by `byMs`, in milliseconds of `ticks` each, rounded up until the buckets divide it. */
function longer({ windowMs, buckets }: Policy, byMs: number, ticks: number): number {
  let window = windowMs + byMs
  while ((window * ticks) % buckets !== 0) window++
  return window
}
