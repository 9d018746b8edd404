import { createLimiter, fixedWindow } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { serve } from './fleet-member.js'

export interface OverridingJob {
  readonly redis: { readonly host: string; readonly port: number }
  /** The number of this process, which its overrides have as `by`. */
  readonly member: number
  readonly acts: number
}

/** How this process sees each key once nothing is written any more: the limit, who gave it, and whether it is blocked. */
export interface OverridingResult {
  readonly keys: readonly { readonly limit: number; readonly by: string; readonly isBlocked: boolean }[]
  readonly wrong: readonly string[]
}

const KEYS = Array.from({ length: 8 }, (_, i) => `{key}:${i}`)
const OWN_LIMIT = 10

/** Overrides, blocks, resets and releases the same keys as others do, and then says what it has learned of all. */
serve<OverridingJob, OverridingResult>(async ({ redis, member, acts }) => {
  const store = redisStore(redis)
  const policies = [fixedWindow({ limit: OWN_LIMIT, window: '1d' })]
  const limiter = createLimiter({
    name: 'overriding',
    policies,
    store,
    onStoreError: 'throw',
    deadline: '30s',
  })
  const wrong: string[] = []
  /** Each override has its limit as its reason too: a torn one has another. */
  limiter.on('override', ({ record: { kind, limits, reason, by } }) => {
    const isWhole = kind !== 'override' || `${Object.values(limits ?? {})[0]} of ${by}` === reason
    if (!isWhole) wrong.push(`a record of ${by} with the reason ${reason}`)
  })
  await limiter.consume('warm')
  return async () => {
    for (let i = 0; i < acts; i++) {
      const key = KEYS[(i * 5 + member) % KEYS.length]!
      const limit = 100 + 10 * i + member
      const by = `process ${member}`
      const decision = await limiter.consume(key)
      if (i % 5 < 2)
        await limiter.override(key, { limit, until: '1h', reason: `${limit} of ${by}`, by, force: true })
      else if (i % 5 === 2) await limiter.block(key, '1h', { reason: 'race', by })
      else if (i % 5 === 3) await limiter.removeOverride(key)
      else await limiter.reset(key)
      await decision.settle(0)
    }
    // What the others wrote last is known two seconds later.
    await new Promise((resolve) => setTimeout(resolve, 2000))
    const all = await limiter.overrides()
    const keys = await Promise.all(
      KEYS.map(async (key) => {
        const made = all.find((each) => each.key === key && each.kind === 'override')
        const { limit, reason } = await limiter.peek(key)
        const listed = made ? Object.values(made.limits ?? {})[0] : OWN_LIMIT
        if (limit !== listed) wrong.push(`${key} has the limit ${limit}, and the list says ${listed}`)
        const isBlocked = reason === 'blocked'
        const isListed = all.some((each) => each.key === key && each.kind === 'block')
        if (isBlocked !== isListed)
          wrong.push(`${key} is blocked: ${isBlocked}, and the list says ${isListed}`)
        return { limit, by: made?.by ?? '', isBlocked }
      }),
    )
    await limiter.close()
    await store.close()
    return { keys, wrong }
  }
})
