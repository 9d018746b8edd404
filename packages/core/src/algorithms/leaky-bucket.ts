import type { DeclarationOf } from '../values/options.js'
import { type Algorithm, capacity, factory, type PolicyFactory } from './contract/policy.js'
import { debt } from './debt/debt.js'
import { DEBT_POLICY, type DebtOptions, debtPolicy } from './debt/debt-policy.js'

/*
 * The leaky bucket as a meter (Turner 1986; the "funnel"): each unit raises the level by one, the level drains at
 * limit/window, and a call fits while level + cost <= capacity. The level is the debt of debt/debt.ts divided by the
 * window. With `acquire` it is a shaper: capacity units start at once, then one each
 * window/limit.
 */

export interface LeakyBucketOptions extends DebtOptions {
  /**
   * Units that the bucket holds.
   * @default limit
   */
  readonly capacity?: number
}

const LEAKY_BUCKET = { ...DEBT_POLICY, capacity } satisfies DeclarationOf<LeakyBucketOptions>

/**
 * A bucket that drains at limit/window and denies a call that would overflow it. Any span of length s admits at most capacity +
 * limit * s / window.
 * @throws {PolicyError} when a number is not positive and whole, or capacity x window passes 2^52, with the window in
 * microseconds, or in milliseconds if it is longer than an hour.
 * @example
 * import { createLimiter, leakyBucket } from '@sluice/core'
 * // Calls wait for their turn: 4 at once, then one each 500 ms.
 * const limiter = createLimiter({ policies: [leakyBucket({ limit: 2, window: '1s', capacity: 4 })] })
 * const { waitMs } = await limiter.acquire('printer')
 */
export const leakyBucket: PolicyFactory<LeakyBucketOptions> = /* @__PURE__ */ factory(
  'leakyBucket',
  LEAKY_BUCKET,
  (settings) => debtPolicy(algorithm, settings, 'capacity', settings.capacity),
)

const algorithm: Algorithm = { name: 'leaky-bucket', ...debt }
