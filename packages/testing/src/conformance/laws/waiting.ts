import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { lawsAfter, afterCalls, type Subject } from '../law.js'

/**
 * Declares the laws of waits: a denied call is denied until the wait that it was given is over, and allowed exactly then. Of an
 * answer, `at` is the earliest instant, in microseconds, at which its cost passes; `resetAt` that of a full key; and `nextUnitAt`
 * that of one unit more than remains, which a store must report if its denials are cached.
 */
export function waiting(subject: Subject): void {
  aDeniedCallIsDeniedUntilItsWaitIsOver(subject)
  theRetryInstantDoesNotMove(subject)
  whatFitsNowFitsLater(subject)
  aDenialNamesWhenOneUnitMoreFits(subject)
  aKeyIsFullExactlyAtResetAt(subject)
}

/**
 * A law: on a key that is used up, a drawn cost (`asked`) is denied until the instant `at` that the denial has named, a microsecond
 * before it too, and passes exactly then.
 */
function aDeniedCallIsDeniedUntilItsWaitIsOver(subject: Subject): void {
  const costed = callsAndCost(subject)
  const { lawOfKey } = lawsAfter(subject, costed)
  lawOfKey(
    'denies until the wait is over, and allows exactly then',
    async (caller, { session, policy, cost }) => {
      const { remaining } = await caller.peek(1)
      if (remaining > subject.mostCost) return
      await caller.consume(remaining)
      const asked = cost(policy.capacity)
      const denied = await caller.consume(asked)
      assert(denied.reason === 'limit' && denied.at > session.now)
      session.now = denied.at - 1
      const early = await caller.consume(asked)
      assert.deepEqual([early.reason, early.at], ['limit', denied.at])
      session.now = denied.at
      const due = await caller.consume(asked)
      assert.deepEqual([due.reason, due.at], [undefined, denied.at])
    },
  )
}

/**
 * A law: the instant (`at`) at which a drawn cost (`asked`) will pass stays the same as time goes on, if nothing is charged. It is
 * asked for at several parts of the wait.
 */
function theRetryInstantDoesNotMove(subject: Subject): void {
  const costed = callsAndCost(subject)
  const { lawOfKey } = lawsAfter(subject, costed)
  lawOfKey(
    'does not move the retry instant while nothing is booked',
    async (caller, { session, policy, cost }) => {
      const asked = cost(policy.capacity)
      const { at } = await caller.peek(asked)
      const wait = at - session.now
      for (const part of [0.001, 0.3, 0.5, 0.9, 1]) {
        session.now = Math.floor(at - wait * (1 - part))
        const peeked = await caller.peek(asked)
        assert.equal(peeked.at, Math.max(at, session.now))
      }
    },
  )
}

/**
 * A law: a drawn cost (`asked`) that fits at one instant fits at each later one, and no fewer units remain then. The clock moves by a
 * tenth of a window 24 times.
 */
function whatFitsNowFitsLater(subject: Subject): void {
  const costed = callsAndCost(subject)
  const { lawOfKey } = lawsAfter(subject, costed)
  lawOfKey(
    'allows at every later instant what it allows at one',
    async (caller, { session, policy, cost }) => {
      const asked = cost(policy.capacity)
      session.now = (await caller.peek(asked)).at
      let { remaining } = await caller.peek(asked)
      for (let i = 1; i <= 24; i++) {
        session.now += Math.ceil(policy.window / 10) - (i % 2)
        const later = await caller.peek(asked)
        assert.deepEqual([later.reason, later.at], [undefined, session.now])
        assert(later.remaining >= remaining)
        remaining = later.remaining
      }
    },
  )
}

/**
 * A law: a denial names in `nextUnitAt` the instant at which one unit more than remains would pass, also of a key that is held
 * or blocked.
 */
function aDenialNamesWhenOneUnitMoreFits(subject: Subject): void {
  const costed = callsAndCost(subject)
  const { lawOfKey } = lawsAfter(subject, costed)
  lawOfKey(
    'reports with a denial when one unit more than remains would pass, if its denials may be cached',
    async (caller, { session, policy, cost }) => {
      const { remaining } = await caller.peek(1)
      if (remaining + 1 > Math.min(policy.capacity, subject.mostCost)) return
      const asked = Math.max(cost(policy.capacity), remaining + 1)
      // As the key is, then held, then blocked too: the instant lies at the end of those at the earliest.
      for (const bar of [undefined, 'hold', 'block'] as const) {
        if (bar) await caller[bar](policy.window)
        const denied = await caller.consume(asked)
        assert(denied.reason)
        if (denied.nextUnitAt === undefined && !session.cachesDenials) return
        assert.equal(denied.nextUnitAt, (await caller.peek(denied.remaining + 1)).at)
      }
    },
  )
}

/** A law: at `resetAt` the whole capacity remains, and a microsecond before it does not. */
function aKeyIsFullExactlyAtResetAt(subject: Subject): void {
  const costed = callsAndCost(subject)
  const { lawOfKey } = lawsAfter(subject, costed)
  lawOfKey('is full again exactly at resetAt', async (caller, { session, policy }) => {
    const { resetAt } = await caller.peek(1)
    if (resetAt > session.now) {
      session.now = resetAt - 1
      const early = await caller.peek(1)
      assert(early.remaining < policy.capacity)
      assert.equal(early.resetAt, resetAt)
    }
    session.now = resetAt
    const full = await caller.peek(1)
    assert.deepEqual([full.remaining, full.resetAt], [policy.capacity, session.now])
  })
}

/**
 * Draws what a law about waits needs: the calls that a key has had, and how large a cost is asked for: `cost` returns the drawn part of
 * the most, at least 1 and no more than the store takes in one call.
 */
function callsAndCost(subject: Subject) {
  return fc.tuple(afterCalls(subject), fc.double({ min: 0, max: 1, noNaN: true })).map(([before, share]) => ({
    ...before,
    /** A cost from 1 to `most`. */
    cost: (most: number) => 1 + Math.floor(share * (Math.min(most, subject.mostCost) - 1)),
  }))
}
