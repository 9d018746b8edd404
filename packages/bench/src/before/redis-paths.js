// The paths that are measured over a real Redis, with a closed loop: callers ask again when they are answered. No key reaches its
// limit, and each owes something all the time, as those of busy callers do.

/** @typedef {import('./library.js').Library} Library */
/** @typedef {import('@sluice/core').Policy} Policy */

/**
 * @typedef {object} RedisPath
 * @property {(library: Library) => readonly Policy[]} policies
 * @property {number} callers
 * @property {number} keys
 * @property {boolean} [cluster] Of three masters, with a Cluster client.
 * @property {boolean} [together] A call is on two keys, each under a limiter of its own.
 */

const KEYS = 10_000
const A_THOUSAND = /** @type {const} */ ({ limit: 1000, window: '1h' })

const gcraOf = (/** @type {Library} */ { gcra }) => [gcra(A_THOUSAND)]

/** @type {Readonly<Record<string, RedisPath>>} */
export const redisPaths = {
  '1 caller, gcra': { policies: gcraOf, callers: 1, keys: KEYS },
  '8 callers, gcra': { policies: gcraOf, callers: 8, keys: KEYS },
  '64 callers, gcra': { policies: gcraOf, callers: 64, keys: KEYS },
  '256 callers, gcra': { policies: gcraOf, callers: 256, keys: KEYS },
  '256 callers, sliding log': {
    policies: ({ slidingLog }) => [slidingLog({ limit: 10_000, window: '1s' })],
    callers: 256,
    keys: KEYS,
  },
  '256 callers, 60 sub-buckets': {
    policies: ({ slidingWindow }) => [slidingWindow({ ...A_THOUSAND, buckets: 60 })],
    callers: 256,
    keys: KEYS,
  },
  '256 callers, three policies': {
    policies: ({ gcra }) => [
      gcra(A_THOUSAND),
      gcra({ limit: 10_000, window: '1d' }),
      gcra({ limit: 100_000, window: '30d' }),
    ],
    callers: 256,
    keys: KEYS,
  },
  '256 callers, one hot key': {
    policies: ({ gcra }) => [gcra({ limit: 50_000_000, window: '1d' })],
    callers: 256,
    keys: 1,
  },
  '1 caller, two keys together': { policies: gcraOf, callers: 1, keys: KEYS, together: true },
  '64 callers, two keys together': { policies: gcraOf, callers: 64, keys: KEYS, together: true },
  '64 callers, two keys together, sliding log': {
    policies: ({ slidingLog }) => [slidingLog({ limit: 10_000, window: '1s' })],
    callers: 64,
    keys: KEYS,
    together: true,
  },
  'Cluster of 3, 256 callers, gcra': { policies: gcraOf, callers: 256, keys: KEYS, cluster: true },
}
