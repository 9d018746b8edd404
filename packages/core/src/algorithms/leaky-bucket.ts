import type { Algorithm, Policy } from './contract/policy.js'
import { checkPolicyOptions } from './contract/replaced-options.js'
import { holds } from './debt/holds.js'
import { admit, check, type DebtOptions, debtPolicy, earliest, leasing, release, take, view } from './gcra.js'

/*
 * The leaky bucket as a meter (Turner 1986; the "funnel"): each unit raises the level by one, the level drains at
 * limit/window, and a call fits while level + cost <= capacity. The level is the debt of gcra.ts divided by the
 * window, so the two share their arithmetic. With `acquire` it is a shaper: capacity units start at once, then one each
 * window/limit.
 */

export interface LeakyBucketOptions extends DebtOptions {
  /**
   * Units that the bucket holds.
   * @default limit
   */
  readonly capacity?: number
}

/**
 * A bucket that drains at limit/window and denies a call that would overflow it. Any span of length s admits at most
 * capacity + limit * s / window.
 * @throws {PolicyError} when a number is not positive and whole, or capacity x window passes 2^52.
 * @example
 * import { createLimiter, leakyBucket } from '@sluice/core'
 * // Calls wait for their turn: 4 at once, then one each 500 ms.
 * const limiter = createLimiter({ policies: [leakyBucket({ limit: 2, window: '1s', capacity: 4 })] })
 * const { waitMs } = await limiter.acquire('printer')
 */
export function leakyBucket(options: LeakyBucketOptions): Policy {
  checkPolicyOptions(options, { capacity: true, slots: true })
  return debtPolicy(algorithm, options, 'capacity', options.capacity)
}

export const algorithm: Algorithm = {
  name: 'leaky-bucket',
  ring: false,
  cells: () => 3,
  earliest,
  admit,
  view,
  take,
  release,
  holds,
  leasing,
  check,
}
