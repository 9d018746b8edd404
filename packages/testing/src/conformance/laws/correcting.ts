import { strict as assert } from 'node:assert'
import { expectEqualKeys, law, lawsAfter, afterCalls, replay, type Subject } from '../law.js'

/**
 * Declares the laws of refunds, which give the newest units of a key back, and of charges, which are made whether they fit or
 * not, up to twice the capacity. `mostCost` is the largest cost that the store takes; laws that need a larger one return early.
 */
export function correcting(subject: Subject): void {
  aRefundGivesBackWhatWasConsumed(subject)
  refundsLeaveNoMoreThanTheCapacity(subject)
  aRefundToANewKeyChangesNothing(subject)
  aChargeIsNeverRefused(subject)
  aChargeReportsWhatCountsAfterIt(subject)
  chargesSaturateAtTwiceTheCapacity(subject)
  aKeyOwesAtMostTwiceTheCapacity(subject)
  callsAfterALargeChargeAreCounted(subject)
}

/**
 * A law: a refund of what was just consumed, also in two steps, restores what remained of the key before, and no more. The key has a
 * drawn past (`lawOfKey`).
 */
function aRefundGivesBackWhatWasConsumed(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('gives back what was booked, and no more', async (caller) => {
    const { remaining } = await caller.peek(1)
    const cost = Math.min(remaining, subject.mostCost)
    await caller.consume(cost)
    if (cost > 1) {
      await caller.refund(1)
      assert.equal((await caller.peek(1)).remaining, remaining - cost + 1)
      await caller.refund(cost - 1)
    } else if (cost === 1) await caller.refund(1)
    assert.equal((await caller.peek(1)).remaining, remaining)
  })
}

/**
 * A law: refunds of more than was ever consumed leave a key as one that was never used (`fresh`), and not with more than its capacity. A
 * refund is bounded by the largest cost that the store takes, so several may be needed.
 */
function refundsLeaveNoMoreThanTheCapacity(subject: Subject): void {
  const { factory } = subject.shape
  law(subject, 'never falls below empty', afterCalls(subject), async (session, { options, steps }) => {
    const policy = factory(options)
    const [caller, fresh] = [session.caller([policy]), session.caller([policy])]
    await replay(subject, steps, caller)
    // Refunds of some algorithms leave bookings ahead of now alone, so the last of them passes first.
    session.now = Math.max(session.now, (await caller.peek(1)).at, ...caller.bookings.map(({ at }) => at))
    // Twice the capacity can count, and in a weighted window as much again has faded.
    const mostConsumed = 4 * policy.capacity
    const refund = Math.min(2 * policy.capacity, subject.mostCost)
    for (let left = mostConsumed; left > 0; left -= refund) await caller.refund(refund)
    const { remaining, resetAt } = await caller.peek(1)
    assert.deepEqual([remaining, resetAt], [policy.capacity, session.now])
    await caller.consume(Math.min(policy.capacity, subject.mostCost))
    await fresh.consume(Math.min(policy.capacity, subject.mostCost))
    assert.equal((await caller.peek(1)).remaining, (await fresh.peek(1)).remaining)
  })
}

/** A law: a refund to a key that has consumed nothing changes nothing: it answers later calls as a second key without the refund does. */
function aRefundToANewKeyChangesNothing(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'changes nothing by a refund to a new key',
    afterCalls(subject),
    async (session, { options, steps }) => {
      const policies = [factory(options)]
      const [refunded, fresh] = [session.caller(policies), session.caller(policies)]
      await refunded.refund(3)
      await replay(subject, steps, refunded, fresh)
      await expectEqualKeys(refunded, fresh)
    },
  )
}

/**
 * A law: a `charge`, as the real cost of a call that was larger than expected, takes units whether they fit or not. What remains of the
 * key is less by them, but never below 0.
 */
function aChargeIsNeverRefused(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('never refuses a charge, and takes it from what remains', async (caller, { policy }) => {
    const { remaining } = await caller.peek(1)
    const cost = Math.min(Math.ceil(remaining / 2) + 1, subject.mostCost)
    await caller.charge(cost)
    assert.equal((await caller.peek(1)).remaining, Math.max(0, remaining - cost))
    const more = Math.min(policy.capacity, subject.mostCost)
    await caller.charge(more)
    assert.equal((await caller.peek(1)).remaining, Math.max(0, remaining - cost - more))
  })
}

/**
 * A law: a store that reports what counts after a charge (`counted`) reports the same as a peek: the instant, the units used,
 * those charged, and when all are free again.
 */
function aChargeReportsWhatCountsAfterIt(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('says with a charge what counts after it, if it says that', async (caller, { session }) => {
    const [keyspace, key] = [caller.keyspaces[0]!, caller.key]
    for (let i = 0; i < 3; i++) {
      let counts: readonly number[] | undefined
      const counted = (all: readonly number[]): void => void (counts = [...all])
      const effect = await keyspace.correct({ kind: 'charge', key, cost: 1, counted })
      if (!counts) return // optional: limiters then know no shares that a settlement crosses
      const { used, resetAt } = await caller.peek(0)
      assert.deepEqual(counts, [session.now, used![0], effect, resetAt])
    }
  })
}

/**
 * A law: charges, which take units whether they fit or not, add nothing beyond twice the capacity of a key, so that the wait after them
 * is bounded.
 */
function chargesSaturateAtTwiceTheCapacity(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'saturates at twice the capacity',
    afterCalls(subject),
    async (session, { options, steps }) => {
      const policy = factory(options)
      if (2 * policy.capacity > subject.mostCost) return
      const [once, often] = [session.caller([policy]), session.caller([policy])]
      await replay(subject, steps, once, often)
      session.now = Math.max(session.now, ...once.bookings.map(({ at }) => at))
      await once.charge(2 * policy.capacity)
      for (let i = 0; i < 3; i++) await often.charge(subject.mostCost)
      await expectEqualKeys(once, often)
    },
  )
}

/**
 * A law: after charges of many times the capacity, a refund of one capacity leaves exactly nothing, and one unit more leaves
 * one.
 */
function aKeyOwesAtMostTwiceTheCapacity(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'owes at most twice the capacity',
    afterCalls(subject, { consume: 1 }),
    async (session, { options }) => {
      const { capacity } = factory(options)
      if (2 * capacity > subject.mostCost) return
      const caller = session.caller([factory(options)])
      for (let i = 0; i < 3; i++) await caller.charge(2 * capacity)
      await caller.refund(capacity)
      assert.equal((await caller.peek(1)).remaining, 0)
      await caller.refund(1)
      assert.equal((await caller.peek(1)).remaining, 1)
    },
  )
}

/**
 * A law: after a charge of twice the capacity of a key, calls pass again only once enough of it has left the window or drained, and
 * these calls are counted as any other.
 */
function callsAfterALargeChargeAreCounted(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'counts what passes after a large charge',
    afterCalls(subject, { consume: 1 }),
    async (session, { options }) => {
      const { capacity } = factory(options)
      if (2 * capacity > subject.mostCost) return
      const caller = session.caller([factory(options)])
      await caller.charge(2 * capacity)
      for (const cost of [1, Math.ceil(capacity / 2)]) {
        session.now = (await caller.peek(cost)).at
        const { remaining } = await caller.peek(cost)
        assert.equal((await caller.consume(remaining)).remaining, 0)
        assert.equal((await caller.consume(1)).reason, 'limit')
      }
    },
  )
}
