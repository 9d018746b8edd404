import { createLimiter, memoryStore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { startRedis } from '@sluice/harness/redis'
import { everyAlgorithm } from '../every-algorithm.js'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import type { Outcome, Row } from '../row.js'

/** Where one of two policies refuses a call, the other is not charged for it. */
export const row: Row = { number: 24, fault: 'policies together', run: refuse, perhaps: ['STORE_FORGETS'] }

const WIDE = 10
const NARROW = 3

/**
 * Calls under two policies of which one denies, for every pair of algorithms. Passes if a denial charges neither of them.
 * `share` is the part of the full load, 0 to 1.
 */
async function refuse(share: number): Promise<Outcome> {
  const rounds = Math.max(1, Math.round(10 * share))
  const { host, port, stop } = await startRedis()
  const stores = { memory: memoryStore(), Redis: redisStore({ host, port }) }
  const wrong: string[] = []
  let lists = 0
  for (const [where, store] of Object.entries(stores)) {
    for (const [wideTitle, wide] of everyAlgorithm(WIDE)) {
      for (const [narrowTitle, narrow] of everyAlgorithm(NARROW)) {
        for (const position of [0, 1]) {
          const fault = await faultOf(store, wide, narrow, position, rounds)
          const order = position === 0 ? [wideTitle, narrowTitle] : [narrowTitle, wideTitle]
          if (fault) wrong.push(`${where}, ${order.join(' and ')}: ${fault}`)
          lists++
        }
      }
    }
    await store.close()
  }
  await stop()
  return {
    pass: wrong.length === 0,
    figure:
      `${lists} lists of two, in memory and in Redis, ${4 * rounds} refusals each: the policy that did not refuse ` +
      `unchanged in ${lists - wrong.length}${wrong[0] ? `; ${wrong[0]}` : ''}`,
  }
}

/** The errors after calls that the narrow policy refuses, the wide one being first (0) or second (1) in the list. */
async function faultOf(
  store: Store,
  wide: PolicySpec,
  narrow: PolicySpec,
  position: number,
  rounds: number,
): Promise<string | undefined> {
  const list = (...specs: [PolicySpec, PolicySpec]) =>
    (position === 0 ? specs : specs.reverse()).map(policyOf)
  const policies = list(wide, narrow)
  const limiter = createLimiter({ name: 'pair', policies, store, deadline: '30s', onStoreError: 'throw' })
  const key = `${position}`
  await limiter.reset(key)
  await limiter.consume(key, { cost: NARROW })
  for (let round = 0; round < rounds; round++) {
    const refusals = [
      await limiter.consume(key),
      await limiter.consume(key, { cost: NARROW }),
      await limiter.consume(key, { cost: NARROW + 1 }), // would fit the wide policy, and never fits the narrow one
      await limiter.acquire(key, { maxWait: 0 }),
    ]
    for (const { allowed, policies: states } of refusals) {
      const { remaining } = states[position]!
      if (allowed) return 'admitted beyond the narrow limit'
      if (remaining !== WIDE - NARROW) return `${remaining} left`
    }
  }
  // Under the same shapes with a narrow policy that is not narrow any more, all that the wide one has left passes.
  const opened = list(wide, [narrow[0], { ...narrow[1], limit: 1000 * WIDE }])
  let passed = 0
  while ((await limiter.consume(key, { policies: opened })).allowed) passed++
  return passed === WIDE - NARROW ? undefined : `${passed} passed afterwards`
}
