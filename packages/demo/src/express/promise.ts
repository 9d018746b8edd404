import type { Policy } from '@sluice/core'

/**
 * The most units that one key may get under all of the policies between two instants `spanMs` apart, both included:
 * what the algorithms promise, and so what the answers of the server are checked against.
 */
export function permitted(policies: readonly Policy[], spanMs: number): number {
  return Math.min(...policies.map((policy) => permittedByOne(policy, spanMs / policy.windowMs)))
}

/** The most units that one policy lets pass within a span of this many windows, which may be a fraction: what its algorithm promises. */
function permittedByOne({ algorithm, limit, capacity }: Policy, windows: number): number {
  const whole = Math.floor(windows)
  switch (algorithm.name) {
    case 'sliding-log':
    case 'sliding-window':
      return limit * (whole + 1)
    case 'gcra':
    case 'leaky-bucket':
    case 'token-bucket':
      return capacity + Math.floor(limit * windows)
    case 'token-bucket-interval':
      return capacity + limit * (whole + 1)
    case 'sliding-window-weighted':
      return Math.floor(limit * (whole + windows + 1))
    case 'fixed-window':
      return limit * (whole + 2)
    default:
      throw new Error(`the demo does not know what ${algorithm.name} promises`)
  }
}
