import { whole } from '../values/options.js'

/** Most lists of shapes that a store holds at once. */
export const maxShapes = whole(1, 1_000_000, 1000)

export const SHAPES = {
  code: 'SHAPES_FULL',
  message:
    'the store has met more lists of shapes than maxShapes: let tiers differ in limits and ' +
    'capacities alone',
}
