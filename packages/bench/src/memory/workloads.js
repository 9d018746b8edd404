import { GENEROUS } from '../contender.js'

/** @typedef {import('../contender.js').Limit} Limit */

/**
 * @typedef {object} Workload
 * @property {Limit} limit
 * @property {number} keys
 * @property {boolean} [warm] Every key has been called before.
 * @property {'shuffled' | 'fresh'} [order] In a random order, or each time as a new string, as adapters make keys.
 */

/**
 * Limits that are not reached. They leave a key in debt until it is called again, but for returning keys, whose allowance is full
 * again by then.
 * @satisfies {Record<string, Workload>}
 */
const declared = {
  'one hot key': { limit: GENEROUS, keys: 1, warm: true },
  '10,000 keys': { limit: { limit: 2000, windowMs: 60_000 }, keys: 10_000, warm: true },
  '100,000 keys': { limit: { limit: 100, windowMs: 60_000 }, keys: 100_000, warm: true },
  '100,000 returning keys': { limit: { limit: 1000, windowMs: 1000 }, keys: 100_000, warm: true },
  '100,000 in random order': {
    limit: { limit: 100, windowMs: 60_000 },
    keys: 100_000,
    warm: true,
    order: 'shuffled',
  },
  '100,000 fresh strings': {
    limit: { limit: 100, windowMs: 60_000 },
    keys: 100_000,
    warm: true,
    order: 'fresh',
  },
  '100,000 new keys': { limit: { limit: 10, windowMs: 1000 }, keys: 100_000 },
}

/** @type {Record<keyof typeof declared, Workload>} */
export const workloads = declared
