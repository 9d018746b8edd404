import { GENEROUS } from '../contender.js'

/** @typedef {import('../contender.js').Limit} Limit */

/**
 * @typedef {object} Workload
 * @property {Limit} limit
 * @property {number} keys
 * @property {boolean} [warm] Every key has been called before.
 */

/**
 * Limits that are not reached, but leave a key in debt until it is called again: one whose allowance is full at once
 * need not be kept.
 * @type {Record<'one hot key' | '10,000 keys' | '100,000 keys' | '100,000 new keys', Workload>}
 */
export const workloads = {
  'one hot key': { limit: GENEROUS, keys: 1, warm: true },
  '10,000 keys': { limit: { limit: 2000, windowMs: 60_000 }, keys: 10_000, warm: true },
  '100,000 keys': { limit: { limit: 100, windowMs: 60_000 }, keys: 100_000, warm: true },
  '100,000 new keys': { limit: { limit: 10, windowMs: 1000 }, keys: 100_000 },
}
