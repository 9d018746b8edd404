import { startCluster } from '@sluice/harness/redis'
import type { Outcome, Row } from '../row.js'
import { openClients } from './row-14-clients.js'
import { deadMaster } from './row-14-dead-master.js'
import { slotMoves } from './row-14-slot-moves.js'

/** A slot that moves under load costs nothing, and a master that dies no more than its own slots. */
export const row: Row = {
  number: 14,
  fault: 'Cluster',
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: disturb,
}

/** So long that no unit which was booked is lost, and so few of them that the slot's new masters are asked. */
const LEASES = { ttl: '1h', size: 3 } as const

/**
 * Moves a slot of a Cluster under load, and kills a master, for each kind of client. Passes if limits are exact while slots
 * move, and a death degrades the calls for the dead master alone. `share` is the part of the full load, 0 to 1.
 */
async function disturb(share: number): Promise<Outcome> {
  const cluster = await startCluster({ masters: 3 })
  const clients = await openClients(cluster.masters)
  try {
    const moves: Outcome[] = []
    for (const leases of [undefined, LEASES])
      for (const client of clients) moves.push(await slotMoves(cluster, client, 10_000 * share, leases))
    const death = await deadMaster(cluster, clients, 500 + 3000 * share)
    const list = (outcomes: readonly Outcome[]): string => outcomes.map(({ figure }) => figure).join('; ')
    return {
      pass: [...moves, ...death].every(({ pass }) => pass),
      figure: `a slot moved 3 times: ${list(moves)}. A master killed: ${list(death)}`,
    }
  } finally {
    await Promise.all(clients.map((client) => client.close()))
    await cluster.stop()
  }
}
