import { strict as assert } from 'node:assert'
import type { Booking } from '@sluice/core/store'
import { ANY_WAIT, expectEqualKeys, law, lawsAfter, afterCalls, replay, type Subject } from '../law.js'
import type { Caller } from '../session.js'

/**
 * Declares the laws of cancelling a booking (true if the key is as if it had never been booked, false if its units were released
 * instead) and of confirming that a booking still stands at its instant.
 */
export function cancelling(subject: Subject): void {
  cancellingTheNewestBookingRestoresTheKey(subject)
  cancellingAnOlderBookingReleasesItsUnits(subject)
  cancellingIgnoresCallsThatWroteNothing(subject)
  aBookingStandsUntilTheKeyIsLost(subject)
}

/**
 * A law: cancelling bookings, the newest first, leaves a key as a second one with the same past that never made them (`twin`). Each
 * can be cancelled once.
 */
function cancellingTheNewestBookingRestoresTheKey(subject: Subject): void {
  const { lawOfTwins } = lawsAfter(subject, afterCalls(subject))
  lawOfTwins(
    'restores the key when the newest booking is cancelled',
    async (cancelled, twin, { session }) => {
      for (const caller of [cancelled, twin]) await useUp(caller, subject.mostCost)
      const first = await bookBehindAll(cancelled, subject.mostCost)
      const second = await bookBehindAll(cancelled, subject.mostCost)
      // Half-way to its instant a booking can still be cancelled without a trace, the newest first.
      session.now = Math.floor((session.now + first.at) / 2)
      assert.equal(await cancelled.cancel(second), true)
      assert.equal(await cancelled.cancel(second), false)
      assert.equal(await cancelled.cancel(first), true)
      assert.equal(await cancelled.cancel(first), false)
    },
  )
}

/**
 * A law: a booking after which something else was written (`write`) cannot be undone: to cancel it returns false and comes to the same
 * as to release its units, which a second key with the same past does (`twin`).
 */
function cancellingAnOlderBookingReleasesItsUnits(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'releases the units of a booking that is not the newest write',
    afterCalls(subject),
    async (session, { options, steps }) => {
      const policies = [factory(options)]
      for (const write of ['book', 'charge', 'refund', 'reset'] as const) {
        const [tried, twin] = [session.caller(policies), session.caller(policies)]
        await replay(subject, steps, tried, twin)
        for (const caller of [tried, twin]) {
          const booked = await bookBehindAll(caller, subject.mostCost)
          if (write === 'book') await bookBehindAll(caller, subject.mostCost)
          else if (write === 'reset') await caller.reset()
          else await caller[write](1)
          // Another write came after the booking: to cancel it must come to the same as to release its units.
          if (caller === twin) await caller.release(booked, booked.cost)
          else assert.equal(await caller.cancel(booked), false)
        }
        await expectEqualKeys(tried, twin)
      }
    },
  )
}

/**
 * A law: reads and denied calls, which write nothing, do not keep an earlier booking from being cancelled as if it had never been made
 * (`cancel` returns true).
 */
function cancellingIgnoresCallsThatWroteNothing(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('ignores calls that wrote nothing when a booking is cancelled', async (caller) => {
    const booked = await bookBehindAll(caller, subject.mostCost)
    await caller.peek(1)
    await caller.consume(0)
    await caller.consume(1)
    await caller.book(1, 0)
    assert.equal(await caller.cancel(booked), true)
  })
}

/**
 * A law: a booking 'stands' at its instant (`at`) unless the key was reset, held or blocked meanwhile; TROUBLES lists these, each with
 * what `confirm` has to answer then.
 */
function aBookingStandsUntilTheKeyIsLost(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'confirms a booking until the key is lost, held or blocked',
    afterCalls(subject),
    async (session, { options, steps }) => {
      const policies = [factory(options)]
      for (const [trouble, found] of TROUBLES) {
        const caller = session.caller(policies)
        await replay(subject, steps, caller)
        const booked = await bookBehindAll(caller, subject.mostCost)
        assert.equal(await caller.confirm(booked), 'stands')
        session.now = booked.at
        if (trouble === 'reset') await caller.reset()
        else if (trouble) await caller[trouble](1000)
        assert.equal(await caller.confirm(booked), found)
      }
    },
  )
}

/** Events on a key before its turn, and the standing of its booking after each. */
const TROUBLES = [
  [undefined, 'stands'],
  ['reset', 'lost'],
  ['hold', 'held'],
  ['block', 'held'],
] as const

/**
 * Uses up what remains of a key, and books one unit more, which therefore lies ahead of now. Returns the booking.
 */
async function bookBehindAll(caller: Caller, mostCost: number): Promise<Booking> {
  await useUp(caller, mostCost)
  const { booking: booked } = await caller.book(1, ANY_WAIT)
  assert(booked)
  return booked
}

/** Charges all that is left of a key, in calls of at most `mostCost` units, the most that the store takes in one. */
async function useUp(caller: Caller, mostCost: number): Promise<void> {
  for (let left = (await caller.peek(1)).remaining; left > 0; left -= mostCost) {
    await caller.charge(Math.min(left, mostCost))
  }
}
