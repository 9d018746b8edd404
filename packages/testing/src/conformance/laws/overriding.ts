import { createLimiter } from '@sluice/core'
import type { Store } from '@sluice/core/store'
import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { law, type Subject } from '../law.js'
import { starts } from '../traffic.js'
import { withoutCache } from './several-keys.js'

/**
 * Declares the law of overrides: a raised limit acts at the next call on what was consumed, and so does a lowered one; an exempt key is
 * not counted; without its override a key goes by its own list again. A store without records passes.
 */
export function overriding(subject: Subject): void {
  const { shape, runs } = subject
  const drawn = fc.record({ start: starts })

  law({ ...subject, runs: Math.ceil(runs / 20) }, 'acts by an override', drawn, async (session) => {
    const { store: given } = session
    if (!given.records) return // optional
    const store: Store = { ...withoutCache(given), now: () => session.now, records: () => given.records!() }
    const policy = shape.factory({ limit: LIMIT, window: 3_600_000, ...shape.variant })
    const name = session.freshKey()
    const limiter = createLimiter({ name, policies: [policy], store, onStoreError: 'throw', deadline: '1m' })
    const raised = policy.with({ limit: 3 * LIMIT, capacity: 3 * LIMIT })
    const terms = { until: '1h', reason: 'a law', by: 'the kit' } as const
    const passes = async (cost: number) => (await limiter.consume('key', { cost })).allowed
    try {
      assert.deepEqual([await passes(policy.capacity), await passes(1)], [true, false])
      await limiter.override('key', { policies: [raised], ...terms })
      const { remaining, limit } = await limiter.peek('key')
      assert.deepEqual([limit, await passes(remaining), await passes(1)], [raised.capacity, true, false])
      assert(remaining > 0)
      const lower = { factor: 0.5, ...terms }
      await assert.rejects(limiter.override('key', lower), { code: 'OVERRIDE_LOWERS' })
      await limiter.override('key', { ...lower, force: true })
      assert.deepEqual([(await limiter.peek('key')).limit, await passes(1)], [policy.capacity >> 1, false])
      const { used } = (await limiter.peek('key')).policies[0]!
      await limiter.override('key', { exempt: true, ...terms })
      assert.equal(await passes(LIMIT), true)
      await limiter.removeOverride('key')
      const { policies: states, limit: own } = await limiter.peek('key')
      assert.deepEqual([own, states[0]!.used, await passes(1)], [policy.capacity, used, false])
    } finally {
      await limiter.close()
    }
  })
}

const LIMIT = 10
