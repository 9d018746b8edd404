// The paths that are measured in the process's own memory. Limits are never reached (except where a denial is measured), and no
// key is full again before its next call.
import { measured } from '../algorithms.js'

/** @typedef {import('./library.js').Library} Library */
/** @typedef {import('@sluice/core').Policy} Policy */

/**
 * @typedef {object} MemoryPath
 * @property {(library: Library) => readonly Policy[]} policies
 * @property {'decide' | 'consume' | 'decideAll'} operation The last one is on two keys, each under a limiter of its own.
 * @property {number} keys They are called one after the other.
 * @property {boolean} [denied] Every measured call is denied.
 * @property {boolean} [mixed] Every algorithm has been used in the process before.
 */

const GENEROUS = /** @type {const} */ ({ limit: 50_000_000, window: '1m' })

/** Each on one hot key. @type {Readonly<Record<string, (library: Library) => Policy>>} */
export const algorithms = Object.fromEntries(
  measured.filter(({ variant }) => !('every' in variant)).map(hotPolicy), // the other build may have no calendars
)

/**
 * The factory is that of the build that is measured. A log holds at most 100,000 entries.
 * @param {import('../algorithms.js').Measured} measured
 * @returns {[string, (library: Library) => Policy]}
 */
function hotPolicy({ label, factory, variant, isLog }) {
  const options = isLog ? /** @type {const} */ ({ limit: 100_000, window: '2ms' }) : GENEROUS
  return [label, (library) => library[/** @type {'gcra'} */ (factory)]({ ...options, ...variant })]
}

const MANY = 100_000

/** @type {Readonly<Record<string, MemoryPath>>} */
export const memoryPaths = {
  ...hot('decide'),
  ...hot('consume'),
  'decide, gcra, 100,000 keys': {
    policies: ({ gcra }) => [gcra({ limit: 10_000, window: '10h' })],
    operation: 'decide',
    keys: MANY,
  },
  'decide, sliding log, 100,000 keys': {
    policies: ({ slidingLog }) => [slidingLog({ limit: 1000, window: '10s' })],
    operation: 'decide',
    keys: MANY,
  },
  'decide, three policies': {
    policies: ({ gcra }) => [
      gcra(GENEROUS),
      gcra({ limit: 100_000_000, window: '2h' }),
      gcra({ limit: 50_000_000, window: '1d' }),
    ],
    operation: 'decide',
    keys: 1,
  },
  'decideAll, two keys': {
    policies: ({ gcra }) => [gcra(GENEROUS)],
    operation: 'decideAll',
    keys: 1,
  },
  'decide, denied': {
    policies: ({ gcra }) => [gcra({ limit: 1, window: '1d' })],
    operation: 'decide',
    keys: 1,
    denied: true,
  },
  'decide, gcra, all algorithms in use': {
    policies: ({ gcra }) => [gcra(GENEROUS)],
    operation: 'decide',
    keys: 1,
    mixed: true,
  },
}

/** @param {'decide' | 'consume'} operation @returns {Record<string, MemoryPath>} */
function hot(operation) {
  return Object.fromEntries(
    Object.entries(algorithms).map(([name, policy]) => [
      `${operation}, ${name}`,
      { policies: (/** @type {Library} */ library) => [policy(library)], operation, keys: 1 },
    ]),
  )
}
