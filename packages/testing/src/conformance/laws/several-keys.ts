import {
  consumeAll,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type PenaltyOptions,
  type Policy,
  reserveAll,
  slidingLog,
  type WholeDecision,
} from '@sluice/core'
import { guard, type Penalty, type Store } from '@sluice/core/store'
import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { expectEqualKeys, law, afterCalls, replay, comparable, type Subject } from '../law.js'
import { options, penalties } from '../numbers.js'
import { Caller, type Session } from '../session.js'
import type { TrafficOptions } from '../traffic.js'

/**
 * Declares the laws of a call on several keys, which charges all of them or none, and of what it is made of: `try`, the answer
 * without a charge, and `commit`, a charge that can be undone. `consumeAsOne` makes such a call, for one unit of each key, through
 * limiters as an application does. The first key is of this shape and has a past; one to three others are of any shape, each
 * after `used` calls. They are compared with twins, keys of the same past that are called one by one.
 */
export function severalKeys(subject: Subject): void {
  const { factory } = subject.shape
  everyKeyIsChargedOrNone(subject)
  aWholePassesWhenItsWaitIsOver(subject)
  const watched = fc.constantFrom<Terms>({}, { enforce: false })
  lawOfWholesUnder(
    subject,
    'denies no whole for a part that only watches, which is charged if it fits',
    watched,
  )
  unitsOfEveryKeyAreReservedOrNone(subject)
  deniedWholesLeaveTheOtherKeyUnchanged(subject)
  crossingCallsAllEnd(subject)
  law(subject, 'changes nothing by trying', afterCalls(subject), async (session, value) => {
    const [tried, twin] = [0, 1].map(() => session.caller([factory(value.options)])) as [Caller, Caller]
    await replay(subject, value.steps, tried, twin)
    const answer = await tried.try(1)
    assert.equal(answer.reason, (await twin.peek(1)).reason)
    await expectEqualKeys(tried, twin)
  })
  aCommitAnswersAsConsumeAndCanBeUndone(subject)
  anOlderCommitIsReleased(subject)
}

/**
 * A law: a call on several keys is charged to all of them if each would let a unit pass, and otherwise to none, in whatever order they are
 * named. Each key has the same past three times: one set is called as a whole, one in reverse order, and the `twins` one by one.
 */
function everyKeyIsChargedOrNone(subject: Subject): void {
  const { factory } = subject.shape
  const drawn = callsOnSeveral(subject)
  law(subject, 'charges every key as calls by themselves would, or none', drawn, async (session, value) => {
    const lists = [[factory(value.options)], ...value.more.map(({ policies }) => policies)]
    const [whole, reversed, twins] = [0, 1, 2].map(() => lists.map((policies) => session.caller(policies)))
    await replay(subject, value.steps, whole![0]!, reversed![0]!, twins![0]!)
    for (const keys of [whole!, reversed!, twins!]) await consumeOneByOne(keys.slice(1), value.used)
    for (let i = 0; i < 3; i++) {
      const decided = await consumeAsOne(session, whole!)
      const backwards = await consumeAsOne(session, reversed!.toReversed())
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
        await expectEqualNow(twin, whole![j]!)
        await expectEqualNow(twin, reversed![j]!)
      }
    }
  })
}

/**
 * A law: a call on several keys, which is charged to all of them or to none, is denied until the wait that its denial has named is over,
 * and passes then. The keys have policies of drawn shapes (algorithms in a variant).
 */
function aWholePassesWhenItsWaitIsOver(subject: Subject): void {
  const { factory } = subject.shape
  const drawn = callsOnSeveral(subject)
  law(subject, 'passes as soon as the wait of a whole is over', drawn, async (session, value) => {
    const lists = [[factory(value.options)], ...value.more.map(({ policies }) => policies)]
    const keys = lists.map((policies) => session.caller(policies))
    await replay(subject, value.steps, keys[0]!)
    await consumeOneByOne(keys.slice(1), value.used)
    for (let i = 0; i < 3; i++) {
      const { allowed, retryAfterMs } = await consumeAsOne(session, keys)
      if (allowed || retryAfterMs === Infinity) continue
      // The wait is rounded up to milliseconds: a whole one before its end the call is denied, at its end it passes.
      session.now += (retryAfterMs - 1) * 1000 - 1
      assert.equal((await consumeAsOne(session, keys)).allowed, false)
      session.now += 1001
      assert.equal((await consumeAsOne(session, keys)).allowed, true)
    }
  })
}

/**
 * A law: a reservation on several keys reserves units (to be settled later) of each key, as reservations on each by itself would, or of
 * none, and can be settled.
 */
function unitsOfEveryKeyAreReservedOrNone(subject: Subject): void {
  const { factory } = subject.shape
  law(
    seldomTried(subject),
    'reserves units of every key as calls by themselves would, or of none',
    callsOnSeveral(subject, { consume: 8, refund: 2, charge: 1 }),
    async (session, value) => {
      const lists = [[factory(value.options)], ...value.more.map(({ policies }) => policies)]
      const max = 100
      const keysOf = () =>
        lists.map((policies) => {
          const keyspace = session.store.keyspace('conformance', policies, () => {}, undefined, { max })
          return new Caller(session, [keyspace], session.freshKey())
        })
      const [whole, twins] = [keysOf(), keysOf()]
      if (!twins[0]!.keyspaces[0]!.reservations) return // optional, and no part of any other promise
      await replay(subject, value.steps, whole[0]!, twins[0]!)
      for (const keys of [whole, twins]) await consumeOneByOne(keys.slice(1), value.used)
      const parts = (keys: readonly Caller[]) =>
        keys.map(({ key, tiers }) => {
          return {
            limiter: limiterOf(session, tiers[0]!, { reservations: { max } }),
            key,
            ttl: '1h' as const,
          }
        })
      for (let i = 0; i < 3; i++) {
        const reserved = await reserveAll(parts(whole))
        const alone = await Promise.all(twins.map((twin) => twin.peek(1)))
        const isAllowed = alone.every(({ reason }) => reason === undefined)
        assert.deepEqual(
          [reserved.allowed, reserved.reservations.length],
          [isAllowed, isAllowed ? lists.length : 0],
        )
        if (isAllowed) {
          const each = parts(twins).map(async ({ limiter, key, ttl }) => limiter.reserve(key, { ttl }))
          const decisions = await Promise.all(each)
          if (i === 1) {
            await reserved.settle(0)
            for (const decision of decisions) await decision.settle(0)
          }
        }
        for (const [j, twin] of twins.entries()) await expectEqualNow(twin, whole[j]!)
      }
    },
  )
}

/**
 * A law: thousands of calls on two keys, one of which always denies, leave the other key unchanged, also while they are under
 * way.
 */
function deniedWholesLeaveTheOtherKeyUnchanged(subject: Subject): void {
  const { factory } = subject.shape
  // One run with many calls in place of many runs: what a denial leaves behind may show only after thousands of them.
  const once = { ...subject, runs: 1 }
  law(
    once,
    'leaves a key what it had, however often another denies',
    afterCalls(subject),
    async (session, value) => {
      const [key, twin] = [0, 1].map(() => session.caller([factory(value.options)])) as [Caller, Caller]
      await replay(subject, value.steps, key, twin)
      const denying = session.caller([slidingLog({ limit: 1, window: '1h' })])
      await denying.consume(1)
      const [one, other] = [key, denying].map(({ keyspaces }) => keyspaces[0]!.together?.program)
      // Keyspaces of this process and those with the same program (`together`) are decided in one step, in which no other call can
      // see a charge that is undone.
      const isOneStep = session.store.local === true || (one !== undefined && one === other)
      for (let denied = 0; denied < DENIED_A_RUN * subject.runs; denied += AT_ONCE) {
        session.now += 1000
        const wholes = Promise.all(
          Array.from({ length: AT_ONCE }, () => consumeAsOne(session, [key, denying])),
        )
        // While they are under way a charge that is taken back would be seen.
        const looks = isOneStep ? await looksDuring(wholes, key) : []
        for (const { allowed } of await wholes) assert.equal(allowed, false)
        const untouched = await seenBy(twin, 1)
        for (const look of looks) assert.deepEqual(look, untouched)
      }
      await expectEqualKeys(key, twin)
    },
  )
}

/**
 * A law: calls that come at once on the same several keys, half of them naming the keys in reverse order, do not wait for each other for
 * ever: all end, and each is charged to all keys or to none.
 */
function crossingCallsAllEnd(subject: Subject): void {
  const { factory } = subject.shape
  // A tenth of the runs, as each makes 16 calls on 16 keys.
  const seldom = { ...subject, runs: Math.ceil(subject.runs / 10) }
  law(
    seldom,
    'ends where calls cross on the same keys',
    afterCalls(subject),
    async (session, { options: own }) => {
      // 16 calls at once on the same 16 keys, half of them in reverse: none may wait for another for ever, or charge in part.
      const keys = Array.from({ length: 16 }, () => session.caller([factory(own)]))
      const twin = session.caller([factory(own)])
      const wholes = await Promise.all(
        keys.map((_, i) => consumeAsOne(session, i % 2 ? keys : keys.toReversed())),
      )
      for (const { allowed } of wholes) {
        if (allowed) assert.equal((await twin.consume(1)).reason, undefined)
      }
      const { remaining } = await twin.peek(1)
      for (const key of keys) assert.equal((await key.peek(1)).remaining, remaining)
    },
  )
}

/**
 * A law: `commit`, the second step of a call on several keys, is a charge that can be undone. It answers as `consume` does, and undoing it
 * leaves a key as a second one with the same past that was not charged.
 */
function aCommitAnswersAsConsumeAndCanBeUndone(subject: Subject): void {
  const { factory } = subject.shape
  const committed = fc
    .tuple(afterCalls(subject), fc.integer({ min: 1, max: Math.min(8, subject.mostCost) }))
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
      assert.deepEqual(comparable({ ...answer, booking: undefined }), comparable(await called.consume(cost)))
      // A store without undo makes no booking; its charge is released instead.
      if (answer.booking) assert.equal(await undone.cancel(answer.booking), true)
      else if (!answer.reason) await undone.release(undone.charges.at(-1)!, cost)
      await expectEqualKeys(undone, twin)
    },
  )
}

/**
 * A law: a `commit`, the second step of a call on several keys, after which something else was charged cannot be undone as if it had
 * never been: its units are released, which a second key with the same past (`twin`) does directly.
 */
function anOlderCommitIsReleased(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'releases such a charge after which another call was charged',
    afterCalls(subject),
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

/** Declares the law that a whole counts refusals for the penalties of its parts as calls by themselves would. */
export function severalPenalized(subject: Subject): void {
  const terms = fc.oneof(
    fc.constant<Terms>({}),
    penalties.map((penalty): Terms => ({ penalty: { ...penalty, after: Math.min(penalty.after, 2) } })),
  )
  lawOfWholesUnder(subject, 'counts a refused part of a whole for its penalty, and no other part', terms)
}

/** The options of the limiter of one part. */
interface Terms {
  readonly enforce?: false
  readonly penalty?: Penalty
}

/**
 * Declares a law of calls on several keys (`whole`) under limiters with drawn `terms`: a penalty, or shadow mode (`enforce: false`),
 * which denies nothing. Each key has a twin, a key with the same past that is called by itself. A whole call passes if every
 * enforced part would by itself; then each twin consumes. Otherwise each twin tries, which counts a refusal and charges nothing.
 * After each call, a key and its twin must answer alike.
 */
function lawOfWholesUnder(subject: Subject, name: string, terms: fc.Arbitrary<Terms>): void {
  const drawn = fc
    .tuple(callsOnSeveral(subject), fc.array(terms, { minLength: MOST_KEYS, maxLength: MOST_KEYS }))
    .map(([before, drawnTerms]) => ({ ...before, terms: drawnTerms }))
  law(seldomTried(subject), name, drawn, async (session, value) => {
    const lists = [[subject.shape.factory(value.options)], ...value.more.map(({ policies }) => policies)]
    const keysOf = () => lists.map((policies, i) => session.callerUnder([value.terms[i]!.penalty], policies))
    const [whole, twins] = [keysOf(), keysOf()]
    await replay(subject, value.steps, whole[0]!, twins[0]!)
    for (const keys of [whole, twins]) await consumeOneByOne(keys.slice(1), value.used)
    for (let i = 0; i < 4; i++) {
      const alone = await Promise.all(twins.map((twin) => twin.peek(1)))
      const isAllowed = alone.every(({ reason }, j) => !reason || value.terms[j]!.enforce === false)
      const { allowed, decisions } = await consumeAsOne(session, whole, value.terms)
      assert.equal(allowed, isAllowed)
      assert.deepEqual(
        decisions.map(({ charged }) => charged),
        alone.map(({ reason }) => isAllowed && !reason),
      )
      for (const twin of twins) await (isAllowed ? twin.consume(1) : twin.try(1))
      for (const [j, twin] of twins.entries()) await expectEqualNow(twin, whole[j]!)
      // Every other time the next call finds a part that has just become free.
      const later = alone.map(({ at }) => at).filter((at) => at > session.now && at < Infinity)
      if (i % 2 && later.length > 0) session.now = Math.min(...later)
    }
  })
}

/** The subject with a quarter of its runs, for laws that make many calls in each and go by the store more than by the shape. */
function seldomTried(subject: Subject): Subject {
  return { ...subject, runs: Math.ceil(subject.runs / 4) }
}

/** The most keys of a call in these laws. */
const MOST_KEYS = 4

/**
 * Draws what a law about a call on several keys needs: the past of a first key, whose policy has the shape (an algorithm in one of its
 * variants) under test; the policies of one to three further keys, of any shape (`more`); and how many calls these have had (`used`).
 */
function callsOnSeveral(subject: Subject, kinds?: TrafficOptions['kinds']) {
  const others = fc.constantFrom(...subject.shapes).chain((shape) =>
    options(shape).map((own) => ({
      policies: [shape.factory(own)],
      mostCost: subject.mostCostWith(shape),
    })),
  )
  return fc
    .tuple(
      afterCalls(subject, kinds),
      fc.array(others, { minLength: 1, maxLength: MOST_KEYS - 1 }),
      fc.integer({ min: 0, max: 5 }),
    )
    .map(([before, more, used]) => ({ ...before, more, used }))
}

/** Denied calls for each run of a law, at a time so many: 10,000 where the laws run in full. */
const DENIED_A_RUN = 125
const AT_ONCE = 25

/**
 * Makes one call on all keys: each is charged one unit under its first list of policies, or none is. `terms` are further options of
 * the limiter of each key, such as a penalty (blocking a key after too many denials). Returns the decision about the whole call.
 */
function consumeAsOne(
  session: Session,
  keys: readonly Caller[],
  terms: readonly Terms[] = [],
): Promise<WholeDecision> {
  return consumeAll(
    keys.map(({ key, tiers }, i) => {
      const { penalty, ...others } = terms[i] ?? {}
      return {
        limiter: limiterOf(session, tiers[0]!, {
          ...others,
          ...(penalty && { penalty: penaltyOption(penalty) }),
        }),
        key,
      }
    }),
  )
}

/**
 * Returns a penalty, whose durations are in microseconds, as the option of a limiter, with durations as texts of milliseconds: as plain
 * numbers, small ones would be warned of.
 */
function penaltyOption({ block, maxBlock, forgetAfter, ...others }: Penalty): PenaltyOptions {
  return {
    ...others,
    block: `${block / 1000}ms`,
    maxBlock: `${maxBlock / 1000}ms`,
    forgetAfter: `${forgetAfter / 1000}ms`,
  }
}

type Settings = Pick<LimiterOptions, 'enforce' | 'penalty' | 'reservations'>

/** The limiters of a store, which is that of one session: a list of policies may be tried on several. */
const LIMITERS = new WeakMap<Store, (policies: readonly Policy[], settings: Settings) => Limiter>()

/**
 * A limiter that decides on the same state of a key as the callers of the session do, since it has their store, their policies
 * and the name of their keyspaces. A call on several keys needs it, as such calls are made through limiters. One limiter is made
 * for each store and list of policies, on the `settings` of its first use: LIMITERS keeps for each store the function that makes
 * and remembers them.
 */
function limiterOf({ store }: Session, policies: readonly Policy[], settings: Settings = {}): Limiter {
  const open = LIMITERS.get(store) ?? limitersOf(withoutCache(store))
  LIMITERS.set(store, open)
  return open(policies, settings)
}

/**
 * Returns a function that makes the limiter of a list of policies on this store, once for each list. An error of the store is
 * thrown, and not decided by a failure mode, so that a law sees it.
 */
function limitersOf(store: Store): (policies: readonly Policy[], settings: Settings) => Limiter {
  const common = { name: 'conformance', store, onStoreError: 'throw', deadline: '1m' } as const
  const limiters = new Map<readonly Policy[], Limiter>()
  return (policies, settings) => {
    const known = limiters.get(policies)
    if (known) return known
    const limiter = createLimiter({ ...common, ...settings, policies })
    if (settings.reservations) limiter.on('warning', () => {}) // units of a debt drain, which is no fault of a store
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
async function expectEqualNow(one: Caller, other: Caller): Promise<void> {
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
