import type { Penalty } from '@sluice/core/store'
import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import type { Policy } from '@sluice/core'
import { ANY_WAIT, law, afterCalls, replay, type Past, type Subject } from '../law.js'
import { options, penalties } from '../numbers.js'
import { operationOf } from '../operation.js'
import { ruleOf } from '../rule.js'
import type { Caller, Session } from '../session.js'
import { Trace } from '../trace.js'
import { starts, traffic } from '../traffic.js'

/**
 * Declares the laws of penalties. A penalty blocks a key from its refusal number `after` on, for `block` microseconds first and
 * `factor` times as long for each further refusal, up to `maxBlock`; it forgets them `forgetAfter` microseconds after the key is
 * full again and its block over. A refusal is a `consume` or `book` that is denied for want of room. A key that is used up
 * refuses the next call.
 */
export function penalizing(subject: Subject): void {
  eachRefusalBlocksForLonger(subject)
  aBlockOfNoLengthForgetsTheRefusals(subject)
  onlyRefusalsCount(subject)
  aRefusedBookingCounts(subject)
  aRefusedTryCounts(subject)
  refusalsAreForgottenInTime(subject)
  aResetForgetsTheRefusals(subject)
  refusalsOutlastCallsWithoutThePenalty(subject)
  callsAtOnceAreCountedOneByOne(subject)
}

/** The two lists of one policy under which a key is called, and which share its state, by their index. */
const [WITHOUT_PENALTY, WITH_PENALTY] = [0, 1]

/**
 * A law: from refusal number `after` on each refusal blocks the key, `factor` times as long as the one before and at most
 * `maxBlock`. A call that is denied while the key is blocked counts as none. The instant of the next unit is needed only of
 * stores whose denials are remembered.
 */
function eachRefusalBlocksForLonger(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'blocks for longer with every refusal that counts', drawn, async (session, value) => {
    const caller = await callerWithPast(subject, session, value, value.penalty)
    assert.deepEqual(caller.keyspaces[WITH_PENALTY]!.penalty, value.penalty)
    const { after, block, factor, maxBlock } = value.penalty
    let lasts = block
    for (let refusals = 1; refusals < after + 4; refusals++) {
      await useUp(caller)
      const before = await caller.peek(1)
      const refused = await caller.consume(1, WITH_PENALTY)
      // The cost passes once there is room for it and, from refusal number `after` on, once the block is over too.
      const until = refusals < after ? before.at : Math.max(before.at, session.now + lasts)
      assert.deepEqual([refused.reason, refused.at], ['limit', until])
      if (refusals < after) continue
      const blockedUntil = session.now + lasts
      assert.deepEqual([refused.remaining, refused.blockedUntil], [0, blockedUntil])
      assert(refused.nextUnitAt === until || !session.cachesDenials)
      assert(refused.resetAt >= until)
      for (const instant of [session.now, session.now + lasts - 1]) {
        session.now = instant
        const denied = await caller.consume(1, WITH_PENALTY)
        assert.deepEqual([denied.reason, denied.at], ['blocked', until])
        assert.equal(denied.blockedUntil, blockedUntil)
      }
      session.now += 1
      assert.notEqual((await caller.peek(0)).reason, 'blocked')
      lasts = Math.min(maxBlock, Math.floor(lasts * factor))
    }
  })
}

/**
 * A law: a block by a penalty with a duration of 0 forgets the count of refusals of a key, and leaves a hold (a pause).
 */
function aBlockOfNoLengthForgetsTheRefusals(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'forgets the count at a block of no length', drawn, async (session, value) => {
    const penalty = { ...value.penalty, after: 2 }
    for (const isForgiven of [false, true]) {
      const caller = await callerWithPast(subject, session, { ...value, steps: [] }, penalty)
      await useUp(caller)
      await caller.consume(1, WITH_PENALTY)
      await caller.hold(1)
      if (isForgiven) await caller.blockByPenalty(0)
      assert.equal((await caller.peek(0)).reason, 'held')
      session.now += 1
      await useUp(caller)
      await caller.consume(1, WITH_PENALTY)
      assert.equal((await caller.peek(0)).reason, isForgiven ? undefined : 'blocked')
    }
  })
}

/**
 * A law: with a penalty that blocks a key at the first refusal (a call that is denied for want of room), none of the calls that are no
 * refusals blocks the key.
 */
function onlyRefusalsCount(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'counts no other call', drawn, async (session, value) => {
    const caller = await callerWithPast(subject, session, value, { ...value.penalty, after: 1 })
    await useUp(caller)
    const { capacity } = caller.tiers[0]![0]!
    const { at } = await caller.peek(1, WITH_PENALTY)
    // None of these counts: a read, two calls without the penalty, a cost that never fits, the second step of a call on several
    // keys, a call during a hold, one during a block.
    await caller.consume(0, WITH_PENALTY)
    await caller.consume(1, WITHOUT_PENALTY)
    await caller.book(1, 0, WITHOUT_PENALTY)
    if (capacity < subject.mostCost) await caller.consume(capacity + 1, WITH_PENALTY)
    assert.equal((await caller.commit(1, WITH_PENALTY)).reason, 'limit')
    await caller.hold(1)
    await caller.consume(1, WITH_PENALTY)
    session.now += 1
    assert.equal((await caller.peek(0)).reason, undefined) // the next block would replace that of a penalty
    await caller.block(1)
    await caller.consume(1, WITH_PENALTY)
    session.now += 1
    const { reason } = await caller.peek(1, WITH_PENALTY)
    assert.equal(reason, at > session.now ? 'limit' : undefined)
  })
}

/**
 * A law: a call that may wait (`book`), but not as long as it would have to, counts as a refusal, after which this penalty blocks the
 * key.
 */
function aRefusedBookingCounts(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'counts a place that is refused', drawn, async (session, value) => {
    const caller = await callerWithPast(subject, session, value, { ...value.penalty, after: 1 })
    await useUp(caller)
    const { at } = await caller.peek(1)
    const refused = await caller.book(1, at - session.now - 1, WITH_PENALTY)
    const until = Math.max(at, session.now + value.penalty.block)
    assert.deepEqual([refused.reason, refused.at, refused.booking], ['limit', until, undefined])
    assert.equal((await caller.book(1, ANY_WAIT, WITH_PENALTY)).reason, 'blocked')
  })
}

/**
 * A law: a denied `try`, the first step of a call on several keys, counts as a refusal, after which this penalty blocks the key.
 */
function aRefusedTryCounts(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'counts a try that is refused', drawn, async (session, value) => {
    const caller = await callerWithPast(subject, session, value, { ...value.penalty, after: 1 })
    await useUp(caller)
    const { at } = await caller.peek(1)
    const tried = await caller.try(1, WITH_PENALTY)
    assert.deepEqual([tried.reason, tried.at], ['limit', Math.max(at, session.now + value.penalty.block)])
    assert.equal((await caller.peek(0)).reason, 'blocked')
  })
}

/**
 * A law: a penalty, which here blocks a key at the second refusal, forgets the first one `forgetAfter` microseconds after the key is
 * full again (`resetAt`), and not a microsecond before (`early`).
 */
function refusalsAreForgottenInTime(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'forgets the count when its time is over, and not before', drawn, async (session, value) => {
    const penalty = { ...value.penalty, after: 2 }
    // With `after` 2 a second refusal blocks, if it comes a microsecond before the first is forgotten, but not at that instant.
    for (const early of [1, 0]) {
      const caller = await callerWithPast(subject, session, { ...value, steps: [] }, penalty)
      await useUp(caller)
      const { resetAt } = await caller.consume(1, WITH_PENALTY)
      session.now = resetAt + penalty.forgetAfter - early
      await useUp(caller)
      await caller.consume(1, WITH_PENALTY)
      assert.equal((await caller.peek(0)).reason, early ? 'blocked' : undefined)
    }
  })
}

/**
 * A law: a reset forgets the refusals of a key. So a penalty that blocks the key at the second one never does if there is a reset after
 * each.
 */
function aResetForgetsTheRefusals(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'forgets the count with the key', drawn, async (session, value) => {
    const caller = await callerWithPast(subject, session, value, { ...value.penalty, after: 2 })
    for (let round = 0; round < 3; round++) {
      await useUp(caller)
      assert.equal((await caller.consume(1, WITH_PENALTY)).reason, 'limit')
      assert.equal((await caller.peek(0)).reason, undefined)
      await caller.reset()
    }
  })
}

/**
 * A law: a call that passes without the penalty does not lower the count of refusals of a key: the penalty still blocks it at the second
 * one.
 */
function refusalsOutlastCallsWithoutThePenalty(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'keeps the count while the penalty is turned off', drawn, async (session, value) => {
    const caller = await callerWithPast(subject, session, value, { ...value.penalty, after: 2 })
    await useUp(caller)
    const { resetAt } = await caller.consume(1, WITH_PENALTY)
    session.now = resetAt
    assert.equal((await caller.consume(1, WITHOUT_PENALTY)).reason, undefined)
    await useUp(caller)
    await caller.consume(1, WITH_PENALTY)
    assert.equal((await caller.peek(0)).reason, 'blocked')
  })
}

/**
 * A law: of calls of one unit that come at once, exactly as many pass as units are `left`. Then `after` calls are refused, at the last of
 * which the penalty blocks the key, and the others find it blocked.
 */
function callsAtOnceAreCountedOneByOne(subject: Subject): void {
  const drawn = callsAndPenalty(subject)
  law(subject, 'counts calls that come at once one by one', drawn, async (session, value) => {
    const { after } = value.penalty
    const caller = await callerWithPast(subject, session, value, value.penalty)
    const { remaining } = await caller.peek(1)
    // At most 20 units stay free, so that few calls are enough: these pass, `after` are refused, and 5 find the key blocked.
    const few = Math.min(remaining, 20)
    if (remaining > few) await caller.charge(remaining - few)
    const { remaining: left, at } = await caller.peek(1)
    if (at > session.now) return
    const calls = Array.from({ length: left + after + 5 }, () => caller.consume(1, WITH_PENALTY))
    const reasons = (await Promise.all(calls)).map(({ reason }) => reason)
    const count = (wanted: unknown) => reasons.filter((reason) => reason === wanted).length
    assert.deepEqual([count(undefined), count('limit'), count('blocked')], [left, after, 5])
  })
}

/**
 * Declares the laws of penalties with `then: 'fresh'`: when a block begins, what was consumed is cleared, so the key has its full
 * allowance when the block ends, while the count of refusals stays. Charges and bookings of before are lost: they give nothing
 * back. The last law checks the promise of the algorithms, under one policy or two, for the spans between the beginnings of two
 * blocks.
 */
export function beginningAnew(subject: Subject): void {
  aBlockEndsWithAFullAllowance(subject)
  aBlockLosesEarlierCharges(subject)
  thePromiseHoldsBetweenBlocks(subject)
}

/**
 * A law about a penalty whose blocks clear a key: when a block ends, the key has its whole allowance, and the next refusal still blocks
 * it for longer, by `factor` up to `maxBlock`. `lasts` is the length of the next block, in microseconds.
 */
function aBlockEndsWithAFullAllowance(subject: Subject): void {
  const { factory } = subject.shape
  const drawn = callsAndPenalty(subject, freshPenalties)
  law(subject, 'ends a block with a full allowance, and keeps the count', drawn, async (session, value) => {
    const { after, block, factor, maxBlock } = value.penalty
    const policies = [factory(value.options)]
    const caller = session.callerUnder([undefined, value.penalty], policies, policies)
    await replay(subject, value.steps, caller)
    let lasts = block
    for (let refusals = 1; refusals < after + 3; refusals++) {
      await useUp(caller)
      const refused = await caller.consume(1, WITH_PENALTY)
      assert.equal(refused.reason, 'limit')
      if (refusals < after) continue
      const until = session.now + lasts
      assert.deepEqual([refused.at, refused.remaining, refused.resetAt], [until, 0, until])
      session.now = until - 1
      const blocked = await caller.consume(1, WITH_PENALTY)
      assert.deepEqual([blocked.reason, blocked.at], ['blocked', until])
      session.now = until
      const { remaining, resetAt } = await caller.peek(0)
      assert.deepEqual([remaining, resetAt], [policies[0]!.capacity, until])
      lasts = Math.min(maxBlock, Math.floor(lasts * factor))
    }
  })
}

/**
 * A law: a block by a penalty that clears the key, here after the first refusal, also loses its charges and bookings: they can be neither
 * released, confirmed nor cancelled after it.
 */
function aBlockLosesEarlierCharges(subject: Subject): void {
  const { factory } = subject.shape
  const drawn = callsAndPenalty(subject, freshPenalties)
  law(subject, 'loses what was booked or charged before a block', drawn, async (session, value) => {
    const caller = session.callerUnder([{ ...value.penalty, after: 1 }], [factory(value.options)])
    await caller.consume(1)
    const [charge] = caller.charges
    session.now += 1
    await useUp(caller)
    const booked = await caller.book(1, ANY_WAIT)
    const refused = await caller.consume(1)
    assert.equal(refused.reason, 'limit')
    session.now = refused.at
    if (charge) assert.equal(await caller.release(charge, 1), 0)
    if (booked.booking) {
      assert.equal(await caller.confirm(booked.booking), 'lost')
      assert.equal(await caller.cancel(booked.booking), false)
    }
    assert.equal((await caller.peek(0)).remaining, caller.tiers[0]![0]!.capacity)
  })
}

/**
 * A law about a penalty that blocks a key after some denials and then clears its units: between two blocks no span of time admits
 * more than each policy promises, for drawn calls (`steps`) on a key under one policy or two. A Trace notes what was admitted, and its
 * `check` throws if a span holds more. `isAlone` leaves the second policy (`other`) out.
 */
function thePromiseHoldsBetweenBlocks(subject: Subject): void {
  const { factory, model } = subject.shape
  const scenario = fc.constantFrom(...subject.shapes).chain((other) =>
    fc.record({
      numbers: fc.tuple(options(subject.shape), options(other)),
      other: fc.constant(other),
      isAlone: fc.boolean(),
      penalty: freshPenalties,
      start: starts,
      steps: traffic({ kinds: { consume: 8, book: 3, peek: 1 }, most: 30 }),
    }),
  )
  law(
    subject,
    'admits in any span at most the promise, and once more for each block that begins in it',
    scenario,
    async (session, { numbers: [own, others], other, isAlone, penalty, steps }) => {
      const policies = isAlone ? [factory(own)] : [factory(own), other.factory(others)]
      const rules = [ruleOf(model, own), ruleOf(other.model, others)].slice(0, policies.length)
      const caller = session.callerUnder([penalty], policies)
      let admitted: { readonly at: number; readonly cost: number }[] = []
      /**
       * Checks the promise of each policy for what was admitted since the last block began, when all units were cleared. A span
       * in which a block begins needs no check of its own, as it is made of spans in which none does.
       */
      const check = (): void => {
        for (const rule of rules) {
          const trace = new Trace(rule)
          for (const { at, cost } of admitted) trace.admitted(BigInt(at), BigInt(cost))
          trace.check()
        }
      }
      for (const step of steps) {
        await caller.peek(1)
        const mostCost = isAlone ? subject.mostCost : subject.mostCostWith(other)
        const operation = operationOf(step, session.now, policies, caller.known, mostCost)
        const answer = await caller.perform(operation)
        if (typeof answer !== 'object' || operation.kind === 'peek') continue
        if (!answer.reason) admitted.push({ at: answer.at, cost: operation.cost })
        else if (answer.reason === 'limit' && (await caller.peek(0)).reason === 'blocked') {
          admitted = admitted.filter(({ at }) => at <= session.now)
          check()
          admitted = []
        }
      }
      check()
    },
  )
}

/**
 * Charges a key until a single unit has to wait, so that the next call is refused. The first charge, of the capacity or 1,000
 * units if that is less, is made whether it fits or not and may take the key beyond its capacity; further ones take what still
 * remains.
 */
async function useUp(caller: Caller): Promise<void> {
  await caller.charge(Math.min(caller.tiers[0]![0]!.capacity, 1000))
  for (
    let { at, remaining } = await caller.peek(1);
    at <= caller.session.now;
    { at, remaining } = await caller.peek(1)
  )
    await caller.charge(Math.min(Math.max(1, remaining), 2 ** 31))
}

/**
 * Makes a caller of a new key and carries out the calls (`steps`) of a past on it. The caller has its list of policies twice: first
 * without the penalty, under which the past is made, so that none of its refusals counts towards the first block; and then with it.
 */
async function callerWithPast(
  subject: Subject,
  session: Session,
  { options, steps }: Pick<Past, 'options' | 'steps'>,
  penalty: Penalty,
): Promise<Caller> {
  const policies: readonly Policy[] = [subject.shape.factory(options)]
  const withoutThenWith = [undefined, penalty]
  const caller = session.callerUnder(withoutThenWith, policies, policies)
  await replay(subject, steps, caller)
  return caller
}

/** Draws penalties after whose blocks a key begins anew, with a full allowance. */
const freshPenalties = penalties.map((penalty): Penalty => ({ ...penalty, then: 'fresh' }))

/** Draws the calls that a key has had, and the penalty under which it is called from then on. */
function callsAndPenalty(subject: Subject, drawnPenalties: typeof penalties = penalties) {
  return fc.tuple(afterCalls(subject), drawnPenalties).map(([before, penalty]) => ({ ...before, penalty }))
}
