import { createLimiter, gcra, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { FakeClock } from '@sluice/testing'
import type { Address } from '@sluice/harness/redis'
import type { Outcome } from './row.js'

const HOUR = 3_600_000
const penalty = { after: 2, block: '10m', forgetAfter: HOUR } as const

/** The count of a penalty is there until a millisecond before its time, and is forgotten then, in both stores. */
export async function forgets(redis: Address): Promise<Outcome> {
  const clock = new FakeClock()
  const stores = {
    memory: memoryStore({ clock: clock.now }),
    Redis: redisStore(redis, { clock: clock.now, denialCache: false }),
  }
  const wrong: string[] = []
  for (const [where, store] of Object.entries(stores)) {
    for (const early of [1, 0]) {
      const seen = await play(store, clock, early)
      const expected = `admitted, limit, admitted, limit, ${early ? 'blocked' : 'limit'}`
      if (seen !== expected)
        wrong.push(`in ${where}, ${early} ms before its end: ${seen} where ${expected} is due`)
    }
    await store.close()
  }
  const figure = 'the count is forgotten at its instant and not before, in memory and in Redis'
  return { pass: wrong.length === 0, figure: wrong[0] ?? figure }
}

/**
 * Makes a refused call, waits until its count is forgotten, but for `early` milliseconds, and makes three more. Returns what
 * became of each, to compare stores by.
 */
async function play(store: Store, clock: FakeClock, early: number): Promise<string> {
  const policies = [gcra({ limit: 1, window: '1m' })]
  const limiter = createLimiter({ name: `forgets ${early}`, policies, penalty, store, deadline: '10s' })
  const seen: string[] = []
  const call = async () => {
    const { reason = 'admitted', resetAfterMs } = await limiter.consume('k')
    seen.push(reason)
    return resetAfterMs
  }
  await call()
  clock.pass((await call()) + HOUR - early)
  for (let i = 0; i < 3; i++) await call()
  return seen.join(', ')
}
