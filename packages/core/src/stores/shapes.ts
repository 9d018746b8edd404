import { expected, PolicyError } from '../values/errors.js'

/** @throws {PolicyError} INVALID_OPTION */
export function checkMaxShapes(maxShapes = 1000): number {
  if (Number.isInteger(maxShapes) && maxShapes >= 1 && maxShapes <= 1_000_000) return maxShapes
  const bound = 'maxShapes must be a whole number from 1 to 1000000'
  throw expected(PolicyError, 'INVALID_OPTION', bound, maxShapes)
}

export const SHAPES = {
  code: 'SHAPES_FULL',
  message:
    'the store has met more lists of shapes (algorithms, windows, buckets) than maxShapes: make the lists of tiers once, ' +
    'and let them differ in limits and capacities alone',
}
