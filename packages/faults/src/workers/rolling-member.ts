import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import type { Address } from '@sluice/harness/redis'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import { serve } from './fleet-member.js'

/*
 * A process of one build: each 'go' is one call. It is bundled with the sources of that build, so it uses nothing but
 * what every version has.
 */

export interface RollingJob {
  readonly redis: Address
  readonly policy: PolicySpec
  readonly key: string
}

export interface RollingResult {
  readonly allowed: boolean
  /** Calls so far that met a state which this build could not read. */
  readonly healed: number
}

serve<RollingJob, RollingResult>(async ({ redis: { host, port }, policy, key }) => {
  const store = redisStore({ host, port })
  const policies = [policyOf(policy)]
  const limiter = createLimiter({ name: 'rolling', policies, store, deadline: '10s', onStoreError: 'throw' })
  let healed = 0
  limiter.on('healed', () => healed++)
  await limiter.peek(key)
  return async () => {
    const { allowed } = await limiter.consume(key)
    return { allowed, healed }
  }
})
