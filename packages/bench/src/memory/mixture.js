// The other limiters that a service has in its process: limiters of every algorithm, or several of the same where a package has one.
import { createLimiter, slidingWindow } from '@sluice/core'
import { measured } from '../algorithms.js'
import { drive } from './drive.js'

/** @typedef {import('../contender.js').Contender} Contender */
/** @typedef {import('../contender.js').Limit} Limit */

/** Enough for the compiler to have seen each. */
const CALLS = 50_000
const KEYS = Array.from({ length: 100 }, (_, i) => `other:${i}`)

/** @type {readonly Limit[]} */
const LIMITS = [1, 2, 5, 10, 20, 60, 120, 300].map((seconds) => ({
  limit: 50_000 * seconds,
  windowMs: 1000 * seconds,
}))

const A_MINUTE = { limit: 50_000, window: 60_000 }

const policies = [
  ...measured.filter(({ isPlain }) => isPlain).map(({ policy }) => policy(A_MINUTE)),
  slidingWindow({ ...A_MINUTE, count: 'weighted' }),
]

/**
 * Calls other limiters than the one that is measured afterwards: those of Sluice of all algorithms, one with several
 * policies too, and as many of a package that has one algorithm.
 * @param {string} name
 * @param {(limit: Limit) => Contender | Promise<Contender>} open
 */
export async function useOthers(name, open) {
  const others = name.startsWith('Sluice')
    ? ofSluice()
    : await Promise.all(LIMITS.map(async (limit) => open(limit)))
  for (const other of others) await drive(other, KEYS, { calls: CALLS })
}

/** Each answers at once and with a promise, in turns. @returns {Contender[]} */
function ofSluice() {
  const limiters = [...policies.map((policy) => [policy]), policies.slice(0, 3)].map((list) =>
    createLimiter({ policies: list }),
  )
  return limiters.flatMap((limiter) => [
    { call: (key) => limiter.decide(key), allowed, sync: true },
    { call: (key) => limiter.consume(key), allowed },
  ])
}

const allowed = (/** @type {import('@sluice/core').Decision} */ decision) => decision.allowed
