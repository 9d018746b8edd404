import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import type { Outcome, Row } from '../row.js'

/** A flood of new keys must not set exhausted callers free. */
export const row: Row = { number: 19, fault: 'eviction as a bypass', run: bypass }

const EXHAUSTED = 200
const LIMIT = 10

/**
 * Exhausts some keys and floods the store with others, as an attacker would to be forgotten. Passes if nearly all of the
 * exhausted ones are denied still, and a new key is served. `share` is the part of the full load, 0 to 1.
 */
async function bypass(share: number): Promise<Outcome> {
  const maxKeys = 100_000 * share
  const store = memoryStore({ maxKeys })
  const limiter = createLimiter({
    name: 'bypass',
    store,
    policies: [slidingLog({ limit: LIMIT, window: '1h' })],
  })
  limiter.on('warning', () => {})
  for (let i = 0; i < EXHAUSTED; i++) void limiter.decide(`spent:${i}`, { cost: LIMIT })
  for (let i = 0; i < 10 * maxKeys; i++) void limiter.decide(`flood:${i}`)
  let denied = 0
  for (let i = 0; i < EXHAUSTED; i++) denied += (await limiter.consume(`spent:${i}`)).allowed ? 0 : 1
  const fresh = (await limiter.consume('fresh')).allowed
  await limiter.close()
  return {
    pass: denied >= 0.99 * EXHAUSTED && fresh,
    figure: `${denied} of ${EXHAUSTED} exhausted keys still denied after a flood of 10 x ${maxKeys}; a new key served: ${fresh}`,
  }
}
