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
import { expectEqualKeys, law, past, replay, seen, type Subject } from '../law.js'
import { options } from '../numbers.js'
import type { Caller, Session } from '../session.js'

/**
 * Declares the laws of a call on several keys, which charges all of them or none, and of what it is made of: `try`, the answer
 * without a charge, and `commit`, a charge that can be undone. `decide` makes such a call, for one unit of each key, through
 * limiters as an application does. The first key is of this shape and has a past; one to three others are of any shape, each
 * after `used` calls. They are compared with twins, keys of the same past that are called one by one.
 */
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
      // The whole must pass if every twin would let a unit pass; then the twins are charged one by one.
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
      // The wait is rounded up to milliseconds: a whole one before its end the call is denied, at its end it passes.
      session.now += (retryAfterMs - 1) * 1000 - 1
      assert.equal((await decide(session, keys)).allowed, false)
      session.now += 1001
      assert.equal((await decide(session, keys)).allowed, true)
    }
  })

  // One run with many calls in place of many runs: what a denial leaves behind may show only after thousands of them.
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
      // Keyspaces with the same program (`together`) are decided in one step, in which no other call can see a charge that is
      // undone.
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

  // A tenth of the runs, as each makes 16 calls on 16 keys.
  const seldom = { ...subject, runs: Math.ceil(subject.runs / 10) }
  law(seldom, 'ends where calls cross on the same keys', past(subject), async (session, { options: own }) => {
    // 16 calls at once on the same 16 keys, half of them in reverse: none may wait for another for ever, or charge in part.
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

  const committed = fc
    .tuple(past(subject), fc.integer({ min: 1, max: Math.min(8, subject.mostCost) }))
    .map(([before, cost]) => ({ ...before, cost }))
  law(
    subject,
    'answers a charge that can be undone as a call, and restores the key when it is undone',
    committed,
    async (session, value) => {
      const { cost } = value
      const [undone, called, twin] = [0, 1, 2].map(() => session.caller([factory(value.options)])) as [
        Caller,
        Caller,
        Caller,
      ]
      await replay(subject, value.steps, undone, called, twin)
      const answer = await undone.commit(cost)
      assert.deepEqual(seen({ ...answer, booking: undefined }), seen(await called.consume(cost)))
      // A store without undo makes no booking; its charge is released instead.
      if (answer.booking) assert.equal(await undone.cancel(answer.booking), true)
      else if (!answer.reason) await undone.release(undone.charges.at(-1)!, cost)
      await expectEqualKeys(undone, twin)
    },
  )

  law(
    subject,
    'releases such a charge after which another call was charged',
    past(subject),
    async (session, value) => {
      const [undone, twin] = [0, 1].map(() => session.caller([factory(value.options)])) as [Caller, Caller]
      await replay(subject, value.steps, undone, twin)
      const answer = await undone.commit(1)
      const consumed = await twin.consume(1)
      assert.equal(consumed.reason, answer.reason)
      if (answer.reason) return
      // The charge is no longer the newest write, so only its units are given back.
      for (const caller of [undone, twin]) await caller.charge(1)
      if (answer.booking) assert.equal(await undone.cancel(answer.booking), false)
      else await undone.release(undone.charges.at(-1)!, 1)
      await twin.release(twin.charges.at(-1)!, 1)
      await expectEqualKeys(undone, twin)
    },
  )
}

/** Denied calls for each run of a law, at a time so many: 10,000 where the laws run in full. */
const DENIED_A_RUN = 125
const AT_ONCE = 25

/** One call on all keys: each is charged one unit under its first list of policies, or none is. Returns the decision. */
function decide(session: Session, keys: readonly Caller[]): Promise<WholeDecision> {
  return consumeAll(keys.map(({ key, tiers }) => ({ limiter: limiterOf(session, tiers[0]!), key })))
}

/** The limiters of a store, which is that of one session: a list of policies may be tried on several. */
const LIMITERS = new WeakMap<Store, (policies: readonly Policy[]) => Limiter>()

/**
 * A limiter that decides on the same state of a key as the callers of the session do, since it has their store, their policies
 * and the name of their keyspaces. A call on several keys needs it, as such calls are made through limiters. One limiter is made
 * for each store and list of policies: LIMITERS keeps for each store the function that makes and remembers them.
 */
function limiterOf({ store }: Session, policies: readonly Policy[]): Limiter {
  const open = LIMITERS.get(store) ?? limitersOf(withoutCache(store))
  LIMITERS.set(store, open)
  return open(policies)
}

/**
 * Returns a function that makes the limiter of a list of policies on this store, once for each list. An error of the store is
 * thrown, and not decided by a failure mode, so that a law sees it.
 */
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
 * The store as limiters get it that remember no denials: a cached one would last by the clock of the process, which is not that
 * of the test. It has the same state, no `denialCache`, and a `close` that leaves the store open for the session.
 */
export function withoutCache(store: Store): Store {
  return {
    local: store.local === true,
    guard,
    keyspace: (...args) => store.keyspace(...args),
    now: () => store.now(),
    close() {},
  }
}

/** Consumes `units` of each key, one unit and one call after the other. */
async function consumeOneByOne(keys: readonly Caller[], units: number): Promise<void> {
  for (const key of keys) for (let i = 0; i < units; i++) await key.consume(1)
}

/**
 * Peeks at a key again and again until `pending` is settled, fulfilled or rejected, and at least once. Returns what `seenBy` made
 * of each answer. A rejection is left to the caller, who awaits `pending` too.
 */
async function looksDuring(pending: Promise<unknown>, caller: Caller): Promise<readonly unknown[]> {
  const looks: unknown[] = []
  let isPending = true
  const ended = (): void => void (isPending = false)
  pending.then(ended, ended)
  do looks.push(await seenBy(caller, 1))
  while (isPending)
  return looks
}

/** Asserts that two keys give the same answers now, to a cost of 1 and to one of the whole capacity. */
async function expectSame(one: Caller, other: Caller): Promise<void> {
  const capacity = one.tiers[0]![0]!.capacity
  for (const cost of [1, capacity]) assert.deepEqual(await seenBy(one, cost), await seenBy(other, cost))
}

/**
 * Peeks at a key. Returns the fields of the answer on which two keys with the same past must agree: the instant `at` at which the
 * cost passes, the reason of a denial, what remains, and `resetAt`.
 */
async function seenBy(caller: Caller, cost: number): Promise<readonly unknown[]> {
  const { at, reason, remaining, resetAt } = await caller.peek(cost)
  return [at, reason, remaining, resetAt]
}
