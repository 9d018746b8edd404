import { createLimiter, gcra } from '@sluice/core'
import { type RedisClient, redisStore } from '@sluice/core/redis'
import { Redis } from 'ioredis'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient } from 'redis'
import { serve } from './fleet-member.js'

export interface HandedInJob {
  readonly host: string
  readonly port: number
}

/** By client package, what decided each first call, and whether it was admitted. */
export type HandedInResult = Readonly<
  Record<string, readonly { readonly by: string; readonly allowed: boolean }[]>
>

/** Makes the first calls of this process over clients that are handed in while they connect. */
serve<HandedInJob, HandedInResult>(async ({ host, port }) => async () => {
  const nodeRedis = createClient({ socket: { host, port } })
  nodeRedis.connect().catch(() => {})
  const clients: Record<string, RedisClient> = {
    ioredis: new Redis({ host, port, maxRetriesPerRequest: 0 }),
    iovalkey: new Iovalkey({ host, port, maxRetriesPerRequest: 0 }),
    'node-redis': nodeRedis,
  }
  const results = Object.entries(clients).map(async ([name, client]) => {
    const policies = [gcra({ limit: 10, window: '1h' })]
    const store = redisStore(client, { startTimeout: '20s' })
    const limiter = createLimiter({ name, policies, store, deadline: '2s' })
    const decisions = await Promise.all(Array.from({ length: 5 }, () => limiter.consume('k')))
    return [name, decisions.map(({ degraded, allowed }) => ({ by: degraded ?? 'Redis', allowed }))] as const
  })
  return Object.fromEntries(await Promise.all(results))
})
