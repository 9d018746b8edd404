// Leases are worth nothing if they serve too much: every moment at which a fleet was served is looked at.
import { startChild } from '../../processes/child.js'
import { excess } from './spans.js'

/** @typedef {import('./caller.js').Seen} Seen */

const SIZES = [2, 4]
const NUMBERS = { limit: 10_000, windowMs: 400, ttlMs: 80 }
const WINDOWS = 5

/**
 * @param {import('../connection.js').Address} address
 * @returns {Promise<string[]>} what was found to be right
 */
export async function checkLeases({ host, port }) {
  const found = []
  for (const algorithm of /** @type {const} */ (['gcra', 'slidingLog'])) {
    for (const size of SIZES) {
      const args = [algorithm, JSON.stringify({ host, port })]
      const fleet = Array.from({ length: size }, () =>
        startChild(new URL('caller.js', import.meta.url), args),
      )
      try {
        const job = { name: `${algorithm} of ${size}`, ...NUMBERS, ms: WINDOWS * NUMBERS.windowMs }
        found.push(
          judged(
            algorithm,
            await Promise.all(fleet.map((caller, i) => caller.ask({ ...job, rests: i % 2 === 1 }))),
          ),
        )
      } finally {
        for (const caller of fleet) await caller.stop()
      }
    }
  }
  return found
}

/**
 * @param {keyof typeof excess} algorithm
 * @param {readonly Seen[]} fleet
 */
function judged(algorithm, fleet) {
  const { limit, windowMs, ttlMs } = NUMBERS
  const servedAt = Float64Array.from(fleet.flatMap((seen) => [...seen.servedAt])).sort()
  const sum = (/** @type {'fromMemory' | 'slow' | 'denied'} */ what) =>
    fleet.reduce((total, seen) => total + seen[what], 0)
  const what = `leases of ${ttlMs} ms, ${algorithm} of ${limit} in ${windowMs} ms, ${fleet.length} processes`
  const over = excess[algorithm](servedAt, limit, windowMs * 1000)
  if (over > 0) throw new Error(`${what}: ${over} calls too many were served in a span`)
  if (sum('fromMemory') === 0 || sum('denied') === 0)
    throw new Error(`${what}: nothing was leased, or denied`)
  const unknown = sum('slow') > 0 ? `; ${sum('slow')} left out, whose answers took longer than a lease` : ''
  return (
    `${what}: ${servedAt.length} calls were served in ${WINDOWS} windows, ${sum('fromMemory')} of them from memory, ` +
    `and in no span more than the limit allows (the nearest: ${Math.floor(-over)} calls below)${unknown}`
  )
}
