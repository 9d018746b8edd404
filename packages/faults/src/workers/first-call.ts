import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'

/** A fresh process, whose first calls are made as soon as it is there. Prints what decided them, and after how long. */
async function callAtOnce(url: string): Promise<void> {
  const store = redisStore(url)
  const limiter = createLimiter({ name: 'first', policies: [gcra({ limit: 100, window: '1d' })], store })
  const began = performance.now()
  const decisions = await Promise.all([limiter.consume('a'), limiter.consume('b')])
  const seen: FirstCalls = {
    degraded: decisions.map(({ degraded }) => degraded ?? 'no'),
    ms: performance.now() - began,
  }
  await limiter.close()
  await store.close()
  console.log(JSON.stringify(seen))
}

export interface FirstCalls {
  /** Why Redis did not decide a call, or 'no'. */
  readonly degraded: readonly string[]
  readonly ms: number
}

void callAtOnce(process.argv[2]!)
