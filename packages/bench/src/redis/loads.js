// The loads of each contender. Peers that are no bound for ours are there at every load of many keys.
import { floors } from './contenders/floors.js'
import { peers } from './contenders/peers.js'

const KEYS = 10_000
const AN_HOUR = 3_600_000

/**
 * More than a key is called in a run, and so little that it owes something all the time, as those of busy callers do: a
 * limit that drains at once would have Redis write empty states.
 */
const OF_MANY = { limit: 5000, windowMs: 10 * AN_HOUR }
const OF_ONE = { limit: 1_000_000, windowMs: AN_HOUR }

export const UNION = 'rate-limiter-flexible union'
export const FLEXIBLE = 'rate-limiter-flexible'
export const THREE = 'Sluice, three policies'
export const LOG = 'Sluice, log'
export const SUB_BUCKETS = 'Sluice, 60 sub-buckets'
export const ONE_BY_ONE = 'Sluice, one by one'
export const LEASES = 'Sluice, leases'
/** A key that a penalty has blocked. */
export const BLOCKED = 'Sluice, decide, blocked by a penalty'

const one = [...Object.keys(floors), 'Sluice', ...Object.keys(peers).filter((name) => name !== UNION)]

/** @typedef {import('./loops/closed.js').Load & { names: readonly string[] }} NamedLoad */

/** A turn is so many calls, and no time: a busy machine makes it longer, but not less warm. @type {Readonly<Record<string, NamedLoad>>} */
export const loads = {
  '256 callers': { callers: 256, keys: KEYS, calls: 20_000, names: [...one, ONE_BY_ONE] },
  '64 callers': { callers: 64, keys: KEYS, calls: 20_000, names: [...one, ONE_BY_ONE] },
  '8 callers': { callers: 8, keys: KEYS, calls: 8000, names: one },
  '1 caller': { callers: 1, keys: KEYS, calls: 2000, names: one },
  '256 callers, one hot key': {
    callers: 256,
    keys: 1,
    calls: 20_000,
    names: ['hand-written GCRA', 'Sluice', FLEXIBLE],
  },
  '256 callers, three policies': { callers: 256, keys: KEYS, calls: 20_000, names: [THREE, UNION] },
  '256 callers, 60 sub-buckets': { callers: 256, keys: KEYS, calls: 20_000, names: [SUB_BUCKETS] },
  '256 callers, a log': { callers: 256, keys: KEYS, calls: 20_000, names: [LOG, FLEXIBLE] },
}

/** One caller: what a call costs that travels alone. */
export const alone = {
  callers: 1,
  keys: 1000,
  calls: 1500,
  names: ['Sluice', LOG, SUB_BUCKETS, THREE, FLEXIBLE],
}

/** Whether a goal needs its figures. @param {string} name */
export function isJudged(name) {
  return name.startsWith('Sluice') || name === FLEXIBLE || name === UNION || name === 'SET'
}

/**
 * No call reaches it; in the log the entries of the last second come and go.
 * @param {string} name
 * @param {number} keys
 */
export function limitOf(name, keys) {
  if (name === LOG) return { limit: 10_000, windowMs: 1000 }
  return keys === 1 ? OF_ONE : OF_MANY
}
