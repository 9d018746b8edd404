import {
  consumeAll,
  createLimiter,
  type Decision,
  type Limiter,
  memoryStore,
  type Policy,
} from '@sluice/core'
import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { law, afterCalls, replay, type Subject } from '../law.js'
import { options } from '../numbers.js'
import { Caller, Session } from '../session.js'
import { withoutCache } from './several-keys.js'

/**
 * Declares the law that a limiter answers alike whatever its store is. A key of the store under test and one of a memory store,
 * on the same clock, get the same past; then each kind of call is made on both by limiters, as an application makes them, and
 * every field of the two decisions has to be the same: allowed, denied by a limit, by a cost above the capacity, by a limit of
 * 0, by a hold and by a block. The limiters are new for each call, so that they remember nothing. `beside` are policies of other
 * shapes in the same list.
 */
export function deciding(subject: Subject): void {
  const { factory } = subject.shape
  const beside = fc
    .constantFrom(...subject.shapes)
    .chain((shape) =>
      options(shape).map((own) => ({ policy: shape.factory(own), mostCost: subject.mostCostWith(shape) })),
    )
  const drawn = fc
    .tuple(afterCalls(subject), fc.array(beside, { maxLength: 2 }), fc.integer({ min: 1, max: 2 ** 40 }))
    .map(([before, others, duration]) => ({ ...before, others, duration }))

  law(subject, 'decides as a memory store does, in every field', drawn, async (session, value) => {
    const drawnPolicies = [factory(value.options), ...value.others.map(({ policy }) => policy)]
    const policies = drawnPolicies.map((policy, i) => policy.with({ name: `${i}` }))
    const mostCost = Math.min(subject.mostCost, ...value.others.map((other) => other.mostCost))
    const memory = await Session.open(() => memoryStore({ clock: () => session.now }), value.start)
    const stored = session.caller(policies)
    const twin = new Caller(memory, memory.caller(policies).keyspaces, stored.key)
    await replay({ ...subject, mostCost }, value.steps, stored, twin)

    /** Makes a call by a limiter of each store, and compares the decisions. */
    const compare = async (call: (limiter: Limiter) => Promise<readonly Decision[]>) => {
      const [actual, expected] = await Promise.all(
        [session, memory].map(async ({ store: given }) => {
          const store = { ...withoutCache(given), now: () => session.now }
          const decisions = await call(createLimiter({ name: 'conformance', policies, store, ...STRICT }))
          return decisions.map((decision) => decision.toJSON())
        }),
      )
      assert.deepEqual(actual, expected)
    }
    /** Compares every way to ask about this cost. */
    const compareAll = async (cost: number, tier: readonly Policy[]) => {
      const options = { cost, policies: tier }
      const { key } = stored
      await compare(async (limiter) => [await limiter.peek(key, options)])
      if (cost > mostCost && cost <= Math.min(...tier.map(({ capacity }) => capacity))) return
      await compare(async (limiter) => [await limiter.consume(key, options)])
      await compare(async (limiter) => [await limiter.acquire(key, { ...options, maxWait: 0 })])
      const parts = (limiter: Limiter) => [
        { limiter, key, ...options },
        { limiter, key: `${key}-other`, policies: tier },
      ]
      await compare(async (limiter) => (await consumeAll(parts(limiter))).decisions)
      await compare(async (limiter) => (await consumeAll(parts(limiter).toReversed())).decisions)
    }

    const capacities = policies.map(({ capacity }) => capacity)
    const edges = [0, 1, stored.known.remaining + 1, ...capacities, ...capacities.map((units) => units + 1)]
    const costs = new Set(edges.filter((cost) => cost <= MOST_COST))
    const placeOfLimit0 = value.duration % policies.length
    const withLimit0 = policies.map((policy, i) => (i === placeOfLimit0 ? policy.with({ limit: 0 }) : policy))
    const compareAtEdges = async () => {
      for (const cost of costs) await compareAll(cost, policies)
      for (const cost of [0, 1]) await compareAll(cost, withLimit0)
    }
    await compareAtEdges()
    for (const restriction of ['hold', 'block'] as const) {
      for (const caller of [stored, twin]) await caller[restriction](value.duration)
      await compareAtEdges()
    }
    await memory.close()
  })
}

/** The largest cost of a call. */
const MOST_COST = 2 ** 31

/** An error of the store is thrown, and decided by no failure mode. */
const STRICT = { onStoreError: 'throw', deadline: '1m' } as const
