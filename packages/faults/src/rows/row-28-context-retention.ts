import { AsyncLocalStorage } from 'node:async_hooks'
import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { bytesInUse } from '@sluice/harness/figures'
import type { Outcome, Row } from '../row.js'

/** Nothing that a call leaves behind holds on to the request it came from. */
export const row: Row = { number: 28, fault: 'context retention', run: retain }

const KEYS = 1000
const CONTEXT_BYTES = 10_000

/**
 * Makes requests in contexts that hold much memory. Passes if memory does not grow with them, as it would if a limiter kept
 * contexts after their requests. `share` is the part of the full load, 0 to 1.
 */
async function retain(share: number): Promise<Outcome> {
  const requests = 100_000 * share
  const context = new AsyncLocalStorage<{ readonly body: string }>()
  const limiter = createLimiter({
    name: 'context',
    store: memoryStore(),
    policies: [slidingLog({ limit: 10, window: '1h' })],
  })
  const request = (i: number) =>
    context.run({ body: String.fromCharCode(97 + (i % 26)).repeat(CONTEXT_BYTES) + i }, async () => {
      await limiter.consume(`user:${i % KEYS}`)
      await limiter.acquire(`user:${i % KEYS}`, { maxWait: 0 })
    })
  for (let i = 0; i < 10 * KEYS; i++) await request(i)
  const base = bytesInUse()
  for (let i = 0; i < requests; i++) await request(i)
  const ratio = bytesInUse() / base
  await limiter.close()
  return {
    pass: ratio <= 1.05,
    figure: `${requests} requests of 10 kB context: heap ${((ratio - 1) * 100).toFixed(1)} % off its base (bar 5)`,
  }
}
