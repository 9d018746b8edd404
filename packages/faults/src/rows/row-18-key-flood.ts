import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { bytesInUse } from '@sluice/harness/figures'
import { longKeysApart } from './row-18-long-keys.js'
import { million, type Outcome, type Row } from '../row.js'

/**
 * Random keys without end: memory is bounded by maxKeys and stays flat once it is reached. Long keys: everything that holds keys
 * stays below the bytes that docs/sizing.md names.
 */
export const row: Row = { number: 18, fault: 'key flood', run }

/**
 * Floods a limiter with new keys, and fills everything that keeps keys with very long ones in a process of its own. Passes if
 * memory stays within its bounds. `share` is the part of the full load, 0 to 1.
 */
async function run(share: number): Promise<Outcome> {
  const outcomes = [await flood(share), longKeysApart()]
  return { pass: outcomes.every(({ pass }) => pass), figure: outcomes.map(({ figure }) => figure).join('; ') }
}

const BYTES_PER_KEY = 250
/** Rounds of as many keys as the store may hold, after which memory is measured. */
const SAMPLED = new Set([1, 3, 10])

/**
 * Calls with ten times as many new keys as the store keeps. Passes if the bytes a key stay within the bar and do not grow.
 * `share` is the part of the full load, 0 to 1.
 */
async function flood(share: number): Promise<Outcome> {
  const maxKeys = 1_000_000 * share
  const base = bytesInUse()
  const store = memoryStore({ maxKeys })
  const limiter = createLimiter({ name: 'flood', store, policies: [gcra({ limit: 100, window: '1h' })] })
  limiter.on('warning', () => {})
  const perKey: number[] = []
  for (let round = 1; round <= 10; round++) {
    for (let i = 0; i < maxKeys; i++) void limiter.decide(`ip:${Math.random()}`)
    if (SAMPLED.has(round)) perKey.push((bytesInUse() - base) / maxKeys)
  }
  const most = Math.max(...perKey)
  const growth = perKey.at(-1)! / perKey[1]!
  const size = store.size
  await limiter.close()
  return {
    pass: most <= BYTES_PER_KEY && growth <= 1.1 && size <= maxKeys,
    figure:
      `${million(10 * maxKeys)} random keys, cap ${million(maxKeys)}: at most ${most.toFixed(0)} B x cap ` +
      `(bar ${BYTES_PER_KEY}), last round ${growth.toFixed(2)} x the third`,
  }
}
