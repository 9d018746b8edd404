import { createLimiter, fixedWindow, type Limiter } from '@sluice/core'
import type { Cluster } from '../redis/servers/cluster.js'
import { type Address, command } from '../redis/servers/command.js'
import { pause } from '../redis/servers/until.js'
import type { Outcome } from './row.js'
import type { ClusterClient } from './row-14-clients.js'

const KEYS = Array.from({ length: 60 }, (_, i) => `user-${i}`)

/** One of three masters dies, and nobody takes over. For `ms`, every client asks again and again for keys of all. */
export async function deadMaster(
  cluster: Cluster,
  clients: readonly ClusterClient[],
  ms: number,
): Promise<Outcome[]> {
  const limiters = clients.map(({ name, store }) =>
    createLimiter({
      name: `dead-${name}`,
      store,
      policies: [fixedWindow({ limit: 1000, window: '365d' })],
      deadline: '1s',
      onStoreError: 'throw',
    }),
  )
  await Promise.all(limiters.map((limiter) => failures(limiter)))
  const [dead] = cluster.masters
  const lost = await Promise.all(limiters.map(async ({ name }) => new Set(await keysOf(dead!, name))))
  await dead!.kill()
  const started = performance.now()
  const outcomes = await Promise.all(
    limiters.map(async (limiter, i): Promise<Outcome> => {
      const [name, own] = [clients[i]!.name, lost[i]!]
      let [rounds, degraded, others] = [0, 0, 0]
      while (performance.now() - started < ms) {
        const failed = await failures(limiter)
        degraded += failed.filter((key) => own.has(key)).length
        others += failed.filter((key) => !own.has(key)).length
        rounds++
        await pause(20)
      }
      const [asked, askedOthers] = [own.size * rounds, (KEYS.length - own.size) * rounds]
      return {
        pass: others === 0 && asked > 0 && degraded === asked,
        figure: `${name}: ${degraded} of ${asked} calls for its slots degraded, ${others} of ${askedOthers} for others`,
      }
    }),
  )
  await Promise.all(limiters.map((limiter) => limiter.close()))
  return outcomes
}

/** Asks once for each key; those for which the store did not decide. */
async function failures(limiter: Limiter): Promise<string[]> {
  const asked = await Promise.allSettled(KEYS.map((key) => limiter.consume(key)))
  return KEYS.filter((_, i) => asked[i]!.status === 'rejected')
}

/** The callers whose state a node holds. */
async function keysOf(node: Address, name: string): Promise<string[]> {
  const keys = await command<string[]>(node, 'KEYS', `*:${name}:*`)
  return keys.map((key) => key.slice(key.lastIndexOf(':') + 1))
}
