import { createLimiter, type LeaseOptions } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { policyOf, type PolicySpec } from './policy-spec.js'

/** Units that Redis holds under each policy for a key that a fleet called for, with leases or without. */
export async function charged(
  redis: object,
  policies: readonly PolicySpec[],
  key: string,
  leases?: LeaseOptions,
): Promise<number[]> {
  const store = redisStore(redis)
  const options = { deadline: '30s', onStoreError: 'throw', ...(leases && { leases }) } as const
  const limiter = createLimiter({ name: 'fleet', policies: policies.map(policyOf), store, ...options })
  const decision = await limiter.peek(key)
  await store.close()
  return decision.policies.map(({ limit, remaining }) => limit - remaining)
}
