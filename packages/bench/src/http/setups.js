// How a limiter is set up where it is compared with one that is written by hand.
import { gcra } from '@sluice/core'
import { GENEROUS } from '../contender.js'

/** @typedef {import('../contender.js').Limit} Limit */
/** @typedef {'' | 'ietf' | 'two limiters'} Setup '' has the headers by default. */

/** @type {readonly Setup[]} */
export const setups = ['', 'ietf', 'two limiters']

/** The name of a contender in this set-up. @param {string} name @param {Setup} setup */
export function named(name, setup) {
  return setup === '' ? name : `${name}, ${setup}`
}

/**
 * A contender in all set-ups.
 * @template T
 * @param {string} name
 * @param {(setup: Setup) => T} open
 * @returns {Record<string, T>}
 */
export function inSetups(name, open) {
  return Object.fromEntries(setups.map((setup) => [named(name, setup), open(setup)]))
}

/**
 * The options of Sluice's limiters. Of two the first is never reached, and the second denies where a request is denied: so
 * both count, and both write headers.
 * @param {Setup} setup
 * @param {Limit} limit
 */
export function limitsOf(setup, limit) {
  const last = { name: 'default', policies: [policyOf(limit)] }
  if (setup === 'two limiters') return [{ name: 'wide', policies: [policyOf(GENEROUS)] }, last]
  return [setup === 'ietf' ? { ...last, headers: /** @type {const} */ ('ietf') } : last]
}

/** @param {Limit} limit */
function policyOf({ limit, windowMs }) {
  return gcra({ limit, window: windowMs })
}
