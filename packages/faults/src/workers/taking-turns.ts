import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { setTimeout as pause } from 'node:timers/promises'
import { serve } from './fleet-member.js'

export interface TurnsJob {
  readonly url: string
  /** Turns a second, of all processes. */
  readonly rate: number
  readonly calls: number
  /** Calls made in one turn of the event loop. */
  readonly bunch: number
  /** How often this process is busy for 50 ms. */
  readonly stalls: number
}

export interface TurnsResult {
  /** The numbers of this process's calls, in the order in which they were served. */
  readonly served: readonly number[]
}

serve<TurnsJob, TurnsResult>(async ({ url, rate, calls, bunch, stalls }) => {
  const store = redisStore(url)
  const policies = [gcra({ limit: rate, window: '1s', burst: 1 })]
  const limiter = createLimiter({ name: 'turns', policies, store, deadline: '30s' })
  await store.ready()
  return async () => {
    const served: number[] = []
    const waits: Promise<unknown>[] = []
    const each = Math.ceil(calls / bunch / stalls)
    for (let i = 0; i < calls; i++) {
      waits.push(limiter.acquire('k', { maxWait: '1m' }).then(() => served.push(i)))
      if ((i + 1) % bunch > 0) continue
      const stalledUntil = performance.now() + (((i + 1) / bunch) % each === 0 ? 50 : 0)
      while (performance.now() < stalledUntil);
      await pause(20)
    }
    await Promise.all(waits)
    await limiter.close()
    await store.close()
    return { served }
  }
})
