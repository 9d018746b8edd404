import { createLimiter, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { FakeClock } from '@sluice/testing'
import type { Address } from '@sluice/harness/redis'
import { everyAlgorithm } from './every-algorithm.js'
import { policyOf, type PolicySpec } from './policy-spec.js'
import type { Outcome } from './row.js'

const LIMIT = 5
const BLOCK = 600_000
const penalty = { block: BLOCK, factor: 2, then: 'fresh' } as const

/** With `then: 'fresh'` every key has its whole allowance at the end of a block, under every algorithm and in both stores. */
export async function startsAnew(redis: Address): Promise<Outcome> {
  const clock = new FakeClock()
  const stores = {
    memory: memoryStore({ clock: clock.now }),
    Redis: redisStore(redis, { clock: clock.now, denialCache: false }),
  }
  const algorithms = everyAlgorithm(LIMIT)
  const wrong: string[] = []
  for (const [where, store] of Object.entries(stores)) {
    for (const [title, spec] of algorithms) {
      const fault = await play(store, clock, spec)
      if (fault !== undefined) wrong.push(`${title} in ${where}: ${fault}`)
    }
    await store.close()
  }
  const figure = `${algorithms.length} algorithms begin anew after each of three blocks, in memory and in Redis`
  return { pass: wrong.length === 0, figure: wrong[0] ?? figure }
}

/**
 * Spends a key three times into a block. Returns what was wrong with the admitted calls or the length of a block; undefined if
 * nothing was.
 */
async function play(store: Store, clock: FakeClock, spec: PolicySpec): Promise<string | undefined> {
  const limiter = createLimiter({ name: 'anew', policies: [policyOf(spec)], penalty, store, deadline: '10s' })
  for (const blocks of [1, 2, 4]) {
    let admitted = 0
    let decision = await limiter.consume('k')
    for (; decision.allowed; decision = await limiter.consume('k')) admitted++
    if (admitted !== LIMIT || decision.retryAfterMs !== blocks * BLOCK)
      return `${admitted} admitted and ${decision.retryAfterMs} ms to wait, where ${LIMIT} and ${blocks * BLOCK} are due`
    clock.pass(decision.retryAfterMs)
  }
  await limiter.reset('k')
  return undefined
}
