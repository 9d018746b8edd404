import { createLimiter, fixedWindow } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type ActedOnCall, type ActedOnJob, END, LIMIT, LIMITERS } from './acted-on-jobs.js'
import { serve } from './fleet-member.js'

/** Calls both limiters on the same keys as others do, while somebody acts on these. */
serve<ActedOnJob, readonly ActedOnCall[]>(async ({ redis, keys }) => {
  const store = redisStore(redis)
  const policies = [fixedWindow({ limit: LIMIT, window: '365d' })]
  const limiters = Object.entries(LIMITERS).map(([name, options]) =>
    createLimiter({ name, policies, ...options, store, onStoreError: 'throw', deadline: '30s' }),
  )
  for (const limiter of limiters) await limiter.consume('warm')
  return async () => {
    const calls: ActedOnCall[] = []
    let isOver = false
    const made = limiters.flatMap((limiter) =>
      keys.map(async (key) => {
        while (!isOver) {
          const beganAt = nowMs()
          const decision = limiter.reserves
            ? await limiter.reserve(key, { cost: 1, ttl: '1d' })
            : await limiter.consume(key)
          const { allowed, exempt = false } = decision
          calls.push({ limiter: limiter.name, key, beganAt, endedAt: nowMs(), allowed, exempt })
          // A remembered denial takes no turn of the event loop.
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
      }),
    )
    while ((await limiters[0]!.peek(END)).allowed) await new Promise((resolve) => setTimeout(resolve, 20))
    isOver = true
    await Promise.all(made)
    await Promise.all(limiters.map((limiter) => limiter.close()))
    await store.close()
    return calls
  }
})

/** Milliseconds on the clock that all processes of the machine share. */
const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6
