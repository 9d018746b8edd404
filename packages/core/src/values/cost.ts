import { expected, InputError } from './errors.js'

/** Largest cost of one call, in units. */
const LARGEST_COST = 2 ** 31

/** @throws {InputError} INVALID_COST unless `cost` is a whole number from 0 to 2^31. */
export function checkCost(cost: number, what = 'cost'): number {
  if (Number.isInteger(cost) && cost >= 0 && cost <= LARGEST_COST) return cost
  throw expected(InputError, 'INVALID_COST', `${what} must be a whole number from 0 to 2^31`, cost)
}
