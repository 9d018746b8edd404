import { expectedButGot, InputError } from './errors.js'

/** Largest cost of one call, in units. */
const LARGEST_COST = 2 ** 31

/**
 * Returns the cost if it is valid; `what` names it in the message.
 * @throws {InputError} INVALID_COST unless it is a whole number from 0 to 2^31.
 */
export function checkCost(cost: number, what = 'cost'): number {
  if (Number.isInteger(cost) && cost >= 0 && cost <= LARGEST_COST) return cost
  throw expectedButGot(InputError, 'INVALID_COST', `${what} must be a whole number from 0 to 2^31`, cost)
}
