import type { Policy } from '@sluice/core'

/*
 * The spans of time that matter to a policy, in microseconds.
 */

/** Whether units are paid for by time that passes, so that a larger capacity reaches further back: gcra and the buckets. */
const isDebt = ({ algorithm }: Policy): boolean => /^(gcra|token-bucket|leaky-bucket)/.test(algorithm.name)

/**
 * The time within which calls of one key affect each other, in microseconds: the window, or for algorithms that keep a
 * debt (gcra and the buckets) the time in which the whole capacity drains.
 */
export function scaleOf(policy: Policy): number {
  const { limit, capacity, window } = policy
  return isDebt(policy) && limit > 0 ? (capacity * window) / limit : window
}

/**
 * The span in microseconds that decides whether a policy ever denies a key: no call is denied while the key asks for at
 * most `capacity` units in every stretch (t - span, t]. For most algorithms the span is the window. For those that keep a
 * debt (gcra and the buckets) it is the time in which the whole capacity drains, and one tick more, as they count time in
 * whole ticks. A sliding window adds the width of one bucket, as a call counts until its whole bucket has left the window.
 * A bucket that is refilled at intervals adds one window, as it has to wait for its next refill for up to that long.
 */
export function untouchedSpan(policy: Policy): number {
  const { window, buckets, tick } = policy
  const scale = scaleOf(policy)
  if (policy.algorithm.name.startsWith('sliding-window')) return window + window / buckets
  if (policy.algorithm.name === 'token-bucket-interval') return Math.ceil(scale) + window
  return isDebt(policy) ? Math.ceil(scale) + tick : window
}

/**
 * The most units that a policy admits in any span of this many microseconds, as docs/algorithms.md promises; by it a policy
 * that never denies beside a stricter one is found. A fixed window adds one window to those in the span, since the span may
 * touch the end of one window and the start of another. A weighted sliding window adds up to one limit, since it takes the
 * calls of its oldest bucket as spread evenly. A bucket refilled at intervals admits its capacity, and the limit for each
 * window. Any other debt (gcra and the buckets) admits the capacity, and what drains meanwhile.
 */
export function mostIn(policy: Policy, span: number): number {
  const { limit, capacity, window, algorithm } = policy
  const windows = Math.ceil(span / window)
  if (algorithm.name === 'fixed-window') return limit * (windows + 1)
  if (algorithm.name === 'sliding-window-weighted') return limit * (windows + Math.min(1, span / window))
  if (algorithm.name === 'token-bucket-interval') return capacity + limit * windows
  return isDebt(policy) ? capacity + (limit * span) / window : limit * windows
}
