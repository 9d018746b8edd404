import { createLimiter, type LeaseOptions, type Limiter, slidingLog } from '@sluice/core'
import { type Cluster, command, pause, pipeline } from '@sluice/harness/redis'
import type { Outcome } from '../row.js'
import type { ClusterClient } from './row-14-clients.js'

const LIMIT = 50_000
const MOVES = 3
const CALLERS = 16
const MOST_AT_ONCE = 1000

/** The slot of a busy key goes round the masters, with `company` other keys that make each move take its time. */
export async function slotMoves(
  cluster: Cluster,
  client: ClusterClient,
  company: number,
  leases?: LeaseOptions,
): Promise<Outcome> {
  const limiter = createLimiter({
    name: `moves-${leases ? 'leased-' : ''}${client.name}`,
    store: client.store,
    ...(leases && { leases }),
    policies: [slidingLog({ limit: LIMIT, window: '1d' })],
    deadline: '2s',
    onStoreError: 'throw',
  })
  await limiter.consume('hot')
  const slot = await fillSlot(cluster, limiter.name, company)
  const load = startLoad(limiter)
  for (let move = 0; move < MOVES; move++) {
    await pause(50)
    const from = await cluster.ownerOf(slot)
    const next = (cluster.masters.indexOf(from) + 1) % cluster.masters.length
    await cluster.moveSlot(slot, from, cluster.masters[next]!)
  }
  const { calls, admitted, errors } = await load.stop()
  const spent = 1 + admitted + (await spend(limiter))
  await limiter.close()
  return {
    pass: errors.length === 0 && spent === LIMIT,
    figure:
      `${client.name}${leases ? ' with leases' : ''}: ${calls} calls, ${errors.length} errors${errors.length > 0 ? ` (${errors[0]})` : ''}, ` +
      `${spent} of ${LIMIT} admitted`,
  }
}

/** Gives the limiter's one key company in its slot, which a hash tag of its name does: it has no braces itself. */
async function fillSlot(cluster: Cluster, name: string, company: number): Promise<number> {
  const found = await Promise.all(
    cluster.masters.map((node) => command<string[]>(node, 'KEYS', `*:${name}:*`)),
  )
  const owner = found.findIndex(({ length }) => length > 0)
  const key = found[owner]![0]!
  const sets = Array.from({ length: company }, (_, i) => ['SET', `{${key}}:${i}`, 'x'.repeat(100)])
  await pipeline(cluster.masters[owner]!, sets)
  return cluster.slotOf(key)
}

interface Load {
  stop(): Promise<{ readonly calls: number; readonly admitted: number; readonly errors: readonly string[] }>
}

/** Callers who ask as fast as they are answered: for the busy key, and each fourth time for one of 60 others. */
function startLoad(limiter: Limiter): Load {
  const errors: string[] = []
  let [calls, admitted, stopped] = [0, 0, false]
  const callers = Array.from({ length: CALLERS }, async () => {
    while (!stopped) {
      const key = calls++ % 4 > 0 ? 'hot' : `user-${calls % 60}`
      try {
        const { allowed } = await limiter.consume(key)
        if (allowed && key === 'hot') admitted++
      } catch (error) {
        errors.push((error as Error).message)
      }
    }
  })
  return {
    async stop() {
      stopped = true
      await Promise.all(callers)
      return { calls, admitted, errors }
    },
  }
}

/** Takes all that is left, a slice of this process included, and gives how much that was. */
async function spend(limiter: Limiter): Promise<number> {
  let admitted = 0
  for (const cost of [MOST_AT_ONCE, 1]) {
    while (admitted <= LIMIT && (await limiter.consume('hot', { cost })).allowed) admitted += cost
  }
  return admitted
}
