import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { ANY_WAIT, lawsAfter, afterCalls, type Subject } from '../law.js'

/**
 * Declares the laws of blocks, which deny everything until they end, and of holds, during which `consume` is denied and a booking
 * waits. Durations and instants are microseconds. `lawOfKey` declares a test on a new key with a random past of calls behind it;
 * `lawOfTwins` declares one on two keys with the same past, which must also give the same answers in the end. Of an answer, `at` is
 * the earliest instant at which its cost passes: the later of the end of the block or hold (`until`) and the wait that the past
 * makes (`at` before it). A block replaces an earlier one, also one that would end later, unless it is that of a penalty.
 */
export function blocksAndHolds(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, callsAndDuration(subject))
  aBlockDeniesEveryCallUntilItEnds(subject)
  aBarredKeyCountsWhatWasUsed(subject)
  lawOfKey('goes by the latest block', async (caller, { session, duration }) => {
    for (const lasts of [duration, Math.ceil(duration / 2), duration - 1]) {
      await caller.block(lasts)
      assert.equal((await caller.peek(0)).at, session.now + lasts)
    }
  })
  unblockingKeepsUnitsAndHold(subject)
  aPenaltyNeverShortensABlock(subject)
  aHoldDeniesCallsAndBooksThemForLater(subject)
  aShorterHoldChangesNothing(subject)
}

/**
 * A law: a blocked key denies every call with the reason 'blocked', also one that costs nothing, and names the end of the block
 * (`until`), or the instant at which the call would have passed anyway (`at`) if that is later. From the end on it answers as it
 * would have without a block. `duration` is drawn, in microseconds.
 */
function aBlockDeniesEveryCallUntilItEnds(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, callsAndDuration(subject))
  lawOfKey('denies everything until a block ends', async (caller, { session, duration }) => {
    const { at } = await caller.peek(1)
    await caller.block(duration)
    const until = session.now + duration
    for (const instant of [session.now, until - 1]) {
      session.now = instant
      for (const denied of [await caller.consume(1), await caller.book(1, ANY_WAIT), await caller.peek(1)]) {
        assert.deepEqual([denied.reason, denied.at, denied.remaining], ['blocked', Math.max(at, until), 0])
        assert(denied.resetAt >= until && !denied.booking)
        assert.equal(denied.blockedUntil ?? until, until)
      }
      const read = await caller.consume(0)
      assert.deepEqual([read.reason, read.at, read.remaining], ['blocked', until, 0])
    }
    session.now = until
    const after = await caller.peek(1)
    assert.deepEqual([after.reason, after.at], [at > until ? 'limit' : undefined, Math.max(at, until)])
    session.now = at
    assert.equal((await caller.consume(1)).reason, undefined)
  })
}

/**
 * A law: a key that is blocked, and held (paused) after that, says that nothing remains, and that as much is `used` as a second key
 * with the same past that is neither blocked nor held (`free`).
 */
function aBarredKeyCountsWhatWasUsed(subject: Subject): void {
  const { lawOfTwins } = lawsAfter(subject, callsAndDuration(subject))
  lawOfTwins(
    'counts during a block and a hold what was used, as without them',
    async (barred, free, { session, policy, duration }) => {
      for (const caller of [barred, free]) await caller.charge(Math.min(policy.capacity, subject.mostCost))
      await barred.block(duration)
      await barred.hold(2 * duration)
      for (const passed of [0, duration - 1, duration]) {
        session.now += passed
        const { used } = await free.peek(1)
        for (const denied of [await barred.peek(1), await barred.consume(1)])
          assert.deepEqual([denied.remaining, denied.used], [0, used])
      }
      session.now += 1
    },
  )
}

/**
 * A law: to unblock a key, which is a block of duration 0, leaves what the key has consumed, and a hold (a pause). In the end the key
 * must answer as a second one with the same past that was never blocked (`free`).
 */
function unblockingKeepsUnitsAndHold(subject: Subject): void {
  const { lawOfTwins } = lawsAfter(subject, callsAndDuration(subject))
  lawOfTwins(
    // Twins: the key that was blocked and unblocked must end up as the one that never was, with the same hold.
    'ends a block with a duration of 0, and keeps what was consumed and held',
    async (blocked, free, { session, duration }) => {
      for (const caller of [blocked, free]) {
        await caller.unblock()
        await caller.hold(duration)
      }
      await blocked.block(2 * duration)
      session.now += Math.floor(duration / 2)
      await blocked.unblock()
    },
  )
}

/**
 * A law: a block by a penalty, which a key gets after too many denials, never ends a longer block of an operator sooner. An operator's
 * own block replaces the one before, also a longer one. A peek names the end of the block as `at`.
 */
function aPenaltyNeverShortensABlock(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, callsAndDuration(subject))
  lawOfKey('never shortens a block by that of a penalty', async (caller, { session, duration }) => {
    await caller.block(duration)
    const until = session.now + duration
    for (const lasts of [1, duration, duration + 1]) {
      await caller.blockByPenalty(lasts)
      assert.equal((await caller.peek(0)).at, Math.max(until, session.now + lasts))
    }
    await caller.block(1)
    assert.equal((await caller.peek(0)).at, session.now + 1)
    session.now += 1
    await caller.blockByPenalty(duration)
    assert.equal((await caller.peek(0)).at, session.now + duration)
  })
}

/**
 * A law: a held (paused) key denies calls with the reason 'held' and names the instant at which they pass: the end of the hold
 * (`until`), or the instant of before (`at`) if that is later. A call that may wait that long is booked for that instant.
 */
function aHoldDeniesCallsAndBooksThemForLater(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, callsAndDuration(subject))
  lawOfKey('denies a call during a hold and books it for later', async (caller, { session, duration }) => {
    const { at } = await caller.peek(1)
    await caller.hold(duration)
    const until = session.now + duration
    for (const denied of [
      await caller.consume(1),
      await caller.peek(1),
      await caller.book(1, duration - 1),
    ]) {
      assert.deepEqual([denied.reason, denied.at, denied.remaining], ['held', Math.max(at, until), 0])
      assert(denied.resetAt >= until && !denied.booking)
    }
    const booked = await caller.book(1, Math.max(at, until) - session.now)
    assert.deepEqual(
      [booked.reason, booked.at, booked.booking?.at],
      [undefined, Math.max(at, until), booked.at],
    )
    assert((await caller.peek(1)).at >= booked.at)
  })
}

/** A law: a hold (a pause of a key) that would end before the present one changes nothing: a peek names the later end as `at`. */
function aShorterHoldChangesNothing(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, callsAndDuration(subject))
  lawOfKey('never shortens a hold', async (caller, { session, duration }) => {
    await caller.hold(duration)
    const until = session.now + duration
    for (const lasts of [1, duration - 1, duration]) {
      await caller.hold(lasts)
      assert.equal((await caller.peek(0)).at, until)
    }
    session.now += 1
    await caller.hold(duration)
    assert.equal((await caller.peek(0)).at, until + 1)
  })
}

/** Draws the calls that a key has had, and for how long it is blocked or held, in microseconds. */
function callsAndDuration(subject: Subject) {
  return fc
    .tuple(afterCalls(subject), fc.integer({ min: 2, max: 60_000_000 }))
    .map(([before, duration]) => ({ ...before, duration }))
}
