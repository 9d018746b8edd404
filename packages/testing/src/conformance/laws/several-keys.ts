import {
  consumeAll,
  createLimiter,
  type Limiter,
  type Policy,
  slidingLog,
  type WholeDecision,
} from '@sluice/core'
import { guard, type Store } from '@sluice/core/store'
import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { expectEqualKeys, law, past, replay, type Subject } from '../law.js'
import { options } from '../numbers.js'
import type { Caller, Session } from '../session.js'

/** Several keys in one decision, and what that is made of: `try`, `reserve` and its undo. */
export function severalKeys(subject: Subject): void {
  const { factory } = subject.shape
  const others = fc.constantFrom(...subject.shapes).chain((shape) =>
    options(shape).map((own) => ({
      policies: [shape.factory(own)],
      mostCost: subject.mostCostWith(shape),
    })),
  )
  const several = fc.tuple(
    past(subject),
    fc.array(others, { minLength: 1, maxLength: 3 }),
    fc.integer({ min: 0, max: 5 }),
  )
  const drawn = several.map(([before, more, used]) => ({ ...before, more, used }))

  law(subject, 'charges every key as calls by themselves would, or none', drawn, async (session, value) => {
    const lists = [[factory(value.options)], ...value.more.map(({ policies }) => policies)]
    const [whole, reversed, twins] = [0, 1, 2].map(() => lists.map((policies) => session.caller(policies)))
    await replay(subject, value.steps, whole![0]!, reversed![0]!, twins![0]!)
    for (const keys of [whole!, reversed!, twins!]) await consumeOneByOne(keys.slice(1), value.used)
    for (let i = 0; i < 3; i++) {
      const decided = await decide(session, whole!)
      const backwards = await decide(session, reversed!.toReversed())
      const alone = await Promise.all(twins!.map((twin) => twin.peek(1)))
      const isAllowed = alone.every(({ reason }) => reason === undefined)
      assert.equal(decided.allowed, isAllowed)
      assert.equal(backwards.allowed, isAllowed)
      assert.deepEqual(
        decided.decisions.map(({ charged }) => charged),
        alone.map(() => isAllowed),
      )
      if (isAllowed) await consumeOneByOne(twins!, 1)
      for (const [j, twin] of twins!.entries()) {
        await expectSame(twin, whole![j]!)
        await expectSame(twin, reversed![j]!)
      }
    }
  })

  law(subject, 'passes as soon as the wait of a whole is over', drawn, async (session, value) => {
    const lists = [[factory(value.options)], ...value.more.map(({ policies }) => policies)]
    const keys = lists.map((policies) => session.caller(policies))
    await replay(subject, value.steps, keys[0]!)
    await consumeOneByOne(keys.slice(1), value.used)
    for (let i = 0; i < 3; i++) {
      const { allowed, retryAfterMs } = await decide(session, keys)
      if (allowed || retryAfterMs === Infinity) continue
      session.now += (retryAfterMs - 1) * 1000 - 1
      assert.equal((await decide(session, keys)).allowed, false)
      session.now += 1001
      assert.equal((await decide(session, keys)).allowed, true)
    }
  })

  const once = { ...subject, runs: 1 }
  law(
    once,
    'leaves a key what it had, however often another denies',
    past(subject),
    async (session, value) => {
      const [key, twin] = [0, 1].map(() => session.caller([factory(value.options)])) as [Caller, Caller]
      await replay(subject, value.steps, key, twin)
      const denying = session.caller([slidingLog({ limit: 1, window: '1h' })])
      await denying.consume(1)
      const [one, other] = [key, denying].map(({ keyspaces }) => keyspaces[0]!.together?.program)
      const isOneStep = one !== undefined && one === other
      for (let denied = 0; denied < DENIED_A_RUN * subject.runs; denied += AT_ONCE) {
        session.now += 1000
        const wholes = Promise.all(Array.from({ length: AT_ONCE }, () => decide(session, [key, denying])))
        // While they are under way a charge that is taken back would be seen.
        const looks = isOneStep ? await looksDuring(wholes, key) : []
        for (const { allowed } of await wholes) assert.equal(allowed, false)
        const untouched = await seenBy(twin, 1)
        for (const look of looks) assert.deepEqual(look, untouched)
      }
      await expectEqualKeys(key, twin)
    },
  )

  const seldom = { ...subject, runs: Math.ceil(subject.runs / 10) }
  law(seldom, 'ends where calls cross on the same keys', past(subject), async (session, { options: own }) => {
    const keys = Array.from({ length: 16 }, () => session.caller([factory(own)]))
    const twin = session.caller([factory(own)])
    const wholes = await Promise.all(keys.map((_, i) => decide(session, i % 2 ? keys : keys.toReversed())))
    for (const { allowed } of wholes) {
      if (allowed) assert.equal((await twin.consume(1)).reason, undefined)
    }
    const { remaining } = await twin.peek(1)
    for (const key of keys) assert.equal((await key.peek(1)).remaining, remaining)
  })

  law(subject, 'changes nothing by trying', past(subject), async (session, value) => {
    const [tried, twin] = [0, 1].map(() => session.caller([factory(value.options)])) as [Caller, Caller]
    await replay(subject, value.steps, tried, twin)
    const answer = await tried.try(1)
    assert.equal(answer.reason, (await twin.peek(1)).reason)
    await expectEqualKeys(tried, twin)
  })

  law(subject, 'restores the key when a reservation is undone', past(subject), async (session, value) => {
    const [undone, twin] = [0, 1].map(() => session.caller([factory(value.options)])) as [Caller, Caller]
    await replay(subject, value.steps, undone, twin)
    const answer = await undone.reserve(1)
    assert.equal(answer.reason, (await twin.peek(1)).reason)
    if (answer.booking) assert.equal(await undone.cancel(answer.booking), true)
    else if (!answer.reason) await undone.release({ at: answer.at, cost: 1, decidedAt: answer.now }, 1)
    await expectEqualKeys(undone, twin)
  })

  law(
    subject,
    'releases a reservation after which another call was charged',
    past(subject),
    async (session, value) => {
      const [undone, twin] = [0, 1].map(() => session.caller([factory(value.options)])) as [Caller, Caller]
      await replay(subject, value.steps, undone, twin)
      const answer = await undone.reserve(1)
      const charge = { at: answer.at, cost: 1, decidedAt: answer.now }
      const consumed = await twin.consume(1)
      assert.equal(consumed.reason, answer.reason)
      if (answer.reason) return
      for (const caller of [undone, twin]) await caller.charge(1)
      if (answer.booking) assert.equal(await undone.cancel(answer.booking), false)
      else await undone.release(charge, 1)
      await twin.release(charge, 1)
      await expectEqualKeys(undone, twin)
    },
  )
}

/** Denied calls for each run of a law, at a time so many: 10,000 where the laws run in full. */
const DENIED_A_RUN = 125
const AT_ONCE = 25

/** One call on all keys, each of which is charged one unit, or none. */
function decide(session: Session, keys: readonly Caller[]): Promise<WholeDecision> {
  return consumeAll(keys.map(({ key, tiers }) => ({ limiter: limiterOf(session, tiers[0]!), key })))
}

/** The limiters of a store, which is that of one session: a list of policies may be tried on several. */
const LIMITERS = new WeakMap<Store, (policies: readonly Policy[]) => Limiter>()

/** A limiter that has the state of the keys of a session. */
function limiterOf({ store }: Session, policies: readonly Policy[]): Limiter {
  const open = LIMITERS.get(store) ?? limitersOf(withoutCache(store))
  LIMITERS.set(store, open)
  return open(policies)
}

/** Returns a function that makes a limiter of each list of policies, once for each. */
function limitersOf(store: Store): (policies: readonly Policy[]) => Limiter {
  const settings = { name: 'conformance', store, onStoreError: 'throw', deadline: '1m' } as const
  const limiters = new Map<readonly Policy[], Limiter>()
  return (policies) => {
    const limiter = limiters.get(policies) ?? createLimiter({ ...settings, policies })
    limiters.set(policies, limiter)
    return limiter
  }
}

/**
 * The store for limiters that remember no denials: these would be kept by the clock of the process, which is not that of the
 * test.
 */
function withoutCache(store: Store): Store {
  return {
    local: store.local === true,
    guard,
    keyspace: (...args) => store.keyspace(...args),
    now: () => store.now(),
    close() {},
  }
}

/** Consumes so many units of each key, one call after the other. */
async function consumeOneByOne(keys: readonly Caller[], units: number): Promise<void> {
  for (const key of keys) for (let i = 0; i < units; i++) await key.consume(1)
}

/** The answers to one `peek` after the other until the promise is settled, at least one. */
async function looksDuring(pending: Promise<unknown>, caller: Caller): Promise<readonly unknown[]> {
  const looks: unknown[] = []
  let isPending = true
  const ended = (): void => void (isPending = false)
  pending.then(ended, ended)
  do looks.push(await seenBy(caller, 1))
  while (isPending)
  return looks
}

/** Asserts that two keys give the same answers now. */
async function expectSame(one: Caller, other: Caller): Promise<void> {
  const capacity = one.tiers[0]![0]!.capacity
  for (const cost of [1, capacity]) assert.deepEqual(await seenBy(one, cost), await seenBy(other, cost))
}

/** The answer to a `peek`, as far as two keys with one past must agree on it. */
async function seenBy(caller: Caller, cost: number): Promise<readonly unknown[]> {
  const { at, reason, remaining, resetAt } = await caller.peek(cost)
  return [at, reason, remaining, resetAt]
}
