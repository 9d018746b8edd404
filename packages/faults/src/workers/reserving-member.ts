import '@sluice/calendar' // some versions of Node have no Temporal
import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import type { Address } from '@sluice/harness/redis'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import { serve } from './fleet-member.js'

/* A process that reserves on many keys, settles half, and holds the others until it is killed, for row 51. */

export interface ReservingJob {
  readonly redis: Address
  readonly keys: readonly (readonly [key: string, policy: PolicySpec])[]
  /** Reservations on each key, an even number, the cost of each, the real cost of those that are settled, and milliseconds until they end. */
  readonly count: number
  readonly cost: number
  readonly real: number
  readonly ttl: number
}

/** Resolves with how many were reserved. */
serve<ReservingJob, number>(async ({ redis: { host, port }, keys, count, cost, real, ttl }) => {
  const store = redisStore({ host, port })
  const limiters = keys.map(([key, policy]) => {
    const options = { deadline: '30s', onStoreError: 'throw', reservations: { max: 4000 } } as const
    const limiter = createLimiter({ name: 'reserving', policies: [policyOf(policy)], store, ...options })
    limiter.on('warning', () => {})
    return [key, limiter] as const
  })
  for (const [key, limiter] of limiters) await limiter.peek(key)
  return async () => {
    let reserved = 0
    for (const [key, limiter] of limiters) {
      const decisions = await Promise.all(
        Array.from({ length: count }, () => limiter.reserve(key, { cost, ttl })),
      )
      const settled = decisions.filter((_, i) => i % 2 === 0)
      await Promise.all(settled.map((decision) => decision.settle(real)))
      reserved += decisions.length
    }
    return reserved
  }
})
