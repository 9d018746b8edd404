import type { Outcome, Row } from '../row.js'
import { promotion } from './row-12-promotion.js'
import { sentinel } from './row-12-sentinel.js'

/** A failover loses what had not reached the replica, and shows in nothing else than the time without a master. */
export const row: Row = {
  number: 12,
  fault: 'failover',
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: failOver,
}

/**
 * Makes a replica the master, by hand with three lags and by Sentinel in two ways. Passes if no more units are lost than the
 * replica may not have received. `share` is the part of the full load, 0 to 1.
 */
async function failOver(share: number): Promise<Outcome> {
  const loadMs = 200 + 2000 * share
  const outcomes: Outcome[] = []
  for (const lagMs of [0, 100, 500]) outcomes.push(await promotion(lagMs, loadMs))
  for (const how of ['death', 'planned'] as const) outcomes.push(await sentinel(how, loadMs))
  return {
    pass: outcomes.every(({ pass }) => pass),
    figure: outcomes.map(({ figure }) => figure).join('; '),
  }
}
