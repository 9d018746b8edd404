import '@sluice/calendar'
import { createLimiter, type Duration, type Limiter, type PenaltyOptions, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type Address, until } from '@sluice/harness/redis'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import { serve } from './fleet-member.js'

/* One process of a fleet whose limiter has a penalty, for row 36. */

export interface PenalizedJob {
  /** Nothing: the limiter of the job before is used, once the store decides its calls again. */
  readonly redis?: Address
  readonly policies: readonly PolicySpec[]
  readonly penalty: PenaltyOptions
  readonly key: string
  readonly callers: number
  /** Of each caller. A peek and a call of cost 0, which a penalty does not count, come before each. */
  readonly calls: number
  readonly deadline: Duration
}

/** Calls by what became of them. */
export interface Outcomes {
  readonly admitted: number
  /** With the reason 'limit': what a penalty counts. */
  readonly refused: number
  readonly blocked: number
  /** The calls that the store did not decide, admitted or not. */
  readonly degraded: number
}

let store: Store | undefined
let limiter: Limiter

serve<PenalizedJob, Outcomes>(async ({ redis, policies, penalty, key, callers, calls, deadline }) => {
  if (redis) {
    await store?.close()
    store = redisStore(redis)
    const options = { deadline, policies: policies.map(policyOf), penalty, store }
    limiter = createLimiter({ name: 'penalized', ...options })
  }
  await until('the store to decide', async () => (await limiter.peek(key)).degraded === undefined)
  return async () => {
    const seen = { admitted: 0, refused: 0, blocked: 0, degraded: 0 }
    const callAgain = async () => {
      for (let n = 0; n < calls; n++) {
        await limiter.peek(key)
        await limiter.consume(key, { cost: 0 })
        const { allowed, reason, degraded } = await limiter.consume(key)
        if (allowed) seen.admitted++
        if (reason === 'limit') seen.refused++
        if (reason === 'blocked') seen.blocked++
        if (degraded !== undefined) seen.degraded++
      }
    }
    await Promise.all(Array.from({ length: callers }, callAgain))
    return seen
  }
})
