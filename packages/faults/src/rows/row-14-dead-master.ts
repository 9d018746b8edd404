import { createLimiter, fixedWindow, type LeaseOptions, type Limiter, type Store } from '@sluice/core'
import { type Address, type Cluster, command, pause } from '@sluice/harness/redis'
import type { Outcome } from '../row.js'
import type { ClusterClient } from './row-14-clients.js'

const KEYS = Array.from({ length: 60 }, (_, i) => `user-${i}`)

const LEASES = { ttl: 1000, size: 20 } as const

/**
 * One of three masters dies, and no replica takes over. For `ms`, every client asks again and again for keys of all, with
 * leases and without. Its keys are served from slices for at most as long as those last.
 */
export async function deadMaster(
  cluster: Cluster,
  clients: readonly ClusterClient[],
  ms: number,
): Promise<Outcome[]> {
  const limiters = [undefined, LEASES].flatMap((leases) =>
    clients.map(({ name, store }) => {
      const title = leases ? `${name}-leased` : name
      return { title, lastsMs: leases?.ttl ?? 0, limiter: open(`dead-${title}`, store, leases) }
    }),
  )
  // Until every key is hot.
  for (let i = 0; i < 15; i++) await Promise.all(limiters.map(({ limiter }) => failures(limiter)))
  const [dead] = cluster.masters
  const lost = await Promise.all(
    limiters.map(async ({ limiter }) => new Set(await keysOf(dead!, limiter.name))),
  )
  await dead!.kill()
  const died = performance.now()
  const outcomes = await Promise.all(
    limiters.map(async ({ title, lastsMs, limiter }, i): Promise<Outcome> => {
      const own = lost[i]!
      let [rounds, lateRounds, degraded, others, fromSlices] = [0, 0, 0, 0, 0]
      while (performance.now() - died < ms || lateRounds === 0) {
        const isLate = performance.now() - died >= lastsMs
        const failed = await failures(limiter)
        const failedOwn = failed.filter((key) => own.has(key)).length
        others += failed.length - failedOwn
        if (isLate) degraded += failedOwn
        else fromSlices += own.size - failedOwn
        rounds++
        if (isLate) lateRounds++
        await pause(isLate ? 20 : lastsMs / 2) // while slices last seldom, so that units are left at their end
      }
      const [asked, askedOthers] = [own.size * lateRounds, (KEYS.length - own.size) * rounds]
      return {
        pass: others === 0 && asked > 0 && degraded === asked,
        figure:
          `${title}: ${degraded} of ${asked} calls for its slots degraded, ${others} of ${askedOthers} for others` +
          (lastsMs > 0 ? `, ${fromSlices} served from slices in the ${lastsMs} ms before` : ''),
      }
    }),
  )
  await pause(150) // who has asked for no dead slot this long hears that the store has recovered: QUIET_MS is 100
  await Promise.all(
    limiters.map(async ({ limiter }, i) => limiter.consume(KEYS.find((key) => !lost[i]!.has(key))!)),
  )
  await Promise.all(limiters.map(({ limiter }) => limiter.close()))
  return outcomes
}

/** A limiter on a fixed window of a year, which fails where the store does not answer. */
function open(name: string, store: Store, leases: LeaseOptions | undefined): Limiter {
  return createLimiter({
    name,
    store,
    policies: [fixedWindow({ limit: 1000, window: '365d' })],
    deadline: '1s',
    onStoreError: 'throw',
    ...(leases && { leases }),
  })
}

/** Calls each key once. Returns the keys for which the store did not decide. */
async function failures(limiter: Limiter): Promise<string[]> {
  const asked = await Promise.allSettled(KEYS.map((key) => limiter.consume(key)))
  return KEYS.filter((_, i) => asked[i]!.status === 'rejected')
}

/** The keys of a limiter whose state lies on one node of the Cluster. */
async function keysOf(node: Address, name: string): Promise<string[]> {
  const keys = await command<string[]>(node, 'KEYS', `*:${name}:*`)
  return keys.map((key) => key.slice(key.lastIndexOf(':') + 1))
}
