import { type Algorithm, Policy, type PolicyOptions } from '../contract/policy.js'
import { expected, PolicyError } from '../../values/errors.js'
import { debtWithSlots } from './slots.js'

/** The options that gcra, token bucket and leaky bucket share. */
export interface DebtOptions extends PolicyOptions {
  /**
   * Number of slots, 4 to 64, that record the charges of the last two windows, so that units can be given back long after
   * they were charged. A slot takes 8 bytes per key.
   * @default none: units that have drained since their charge are not given back
   */
  readonly slots?: number
}

/**
 * A policy of gcra, token bucket or leaky bucket. With `slots` all three have one algorithm, otherwise it is `plain`. The
 * capacity is the option `capacityName`, given as `capacity`.
 */
export function debtPolicy(
  plain: Algorithm,
  options: DebtOptions,
  capacityName: string,
  capacity?: number,
): Policy {
  const numbers = { capacity: { name: capacityName, value: capacity }, multiplied: true }
  if (options.slots === undefined) return new Policy(plain, options, numbers)
  if (!(Number.isInteger(options.slots) && options.slots >= 4 && options.slots <= 64)) {
    throw expected(PolicyError, 'INVALID_OPTION', 'slots must be a whole number from 4 to 64', options.slots)
  }
  return new Policy(debtWithSlots, options, { ...numbers, buckets: options.slots })
}
