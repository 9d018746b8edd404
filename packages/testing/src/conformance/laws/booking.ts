import { strict as assert } from 'node:assert'
import { operationOf } from '../operation.js'
import { ANY_WAIT, law, lawsAfter, afterCalls, type Subject } from '../law.js'
import type { Caller } from '../session.js'

/**
 * Declares the laws of bookings: a call that waits is charged at the instant that the store has promised to it. `book` takes a cost
 * and the longest wait in microseconds; of an answer, `at` is the earliest instant, in microseconds, at which its cost passes, and
 * `booking` is set only if that lies ahead of now. `lawOfTwins` declares a test on two keys with the same random past of calls, which
 * must also give the same answers in the end. `useUp` charges a key until a cost passes no more.
 */
export function booking(subject: Subject): void {
  const { lawOfTwins } = lawsAfter(subject, afterCalls(subject))
  aCallIsBookedAtTheAnnouncedInstant(subject)
  lawOfTwins('books nothing when the wait is refused', async (refused, twin) => {
    await useUp(refused, subject.mostCost)
    await useUp(twin, subject.mostCost)
    const { at, now } = await refused.peek(1)
    if (at > now) await refused.book(1, at - now - 1)
  })
  aCostThatFitsNowIsNotBooked(subject)
  callsPassInTheirOrder(subject)
  noCallPassesBeforeABooking(subject)
}

/**
 * A law: on a key that is used up, a call that may wait until the instant `at` which a peek has named is booked at that
 * instant, and one that may wait a microsecond less is denied and names the same instant. The second argument of `book` is the
 * longest wait, in microseconds.
 */
function aCallIsBookedAtTheAnnouncedInstant(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('books at the instant that was announced', async (caller) => {
    await useUp(caller, subject.mostCost)
    const { at, now } = await caller.peek(1)
    if (at === now) return
    const refused = await caller.book(1, at - now - 1)
    assert.deepEqual([refused.reason, refused.at, refused.booking], ['limit', at, undefined])
    const booked = await caller.book(1, at - now)
    assert.deepEqual([booked.reason, booked.at, booked.remaining], [undefined, at, 0])
    assert.deepEqual([booked.booking?.at, booked.booking?.key], [at, caller.key])
  })
}

/**
 * A law: a call that may wait, here for up to 1e9 microseconds, but need not, is charged now and makes no `booking`, which stands for
 * a charge at a later instant.
 */
function aCostThatFitsNowIsNotBooked(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('makes no booking ahead of now if the cost fits', async (caller) => {
    const { at, now, remaining } = await caller.peek(1)
    if (at > now) return
    const booked = await caller.book(1, 1e9)
    assert.deepEqual(
      [booked.reason, booked.at, booked.booking, booked.remaining],
      [undefined, now, undefined, remaining - 1],
    )
  })
}

/**
 * A law: among drawn calls on a key, some of which wait, none passes at an earlier instant (`at`) than one that came before it. Calls
 * that are denied or cost nothing do not count. `operationOf` turns a drawn step into a call with numbers.
 */
function callsPassInTheirOrder(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'lets calls pass in the order in which they came',
    afterCalls(subject, { book: 8, consume: 4, refund: 1, charge: 1 }),
    async (session, { options, steps }) => {
      const caller = session.caller([factory(options)])
      let last = 0
      for (const step of steps) {
        await caller.peek(1)
        const operation = operationOf(step, session.now, caller.tiers[0]!, caller.known, subject.mostCost)
        const answer = await caller.perform(operation)
        if (typeof answer !== 'object' || answer.reason || operation.cost === 0) continue
        assert(answer.at >= last)
        last = answer.at
      }
    },
  )
}

/**
 * A law: while a call is booked for a later instant of a key that is used up, no other call passes before it, even if units are given
 * back meanwhile.
 */
function noCallPassesBeforeABooking(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('admits nothing before the instant of a booking', async (caller, { session }) => {
    await useUp(caller, subject.mostCost)
    const booked = await caller.book(1, ANY_WAIT)
    if (!booked.booking) return
    // The refund makes room before the booking's instant, which must not let another call pass it.
    await caller.refund(1)
    const waits = Math.ceil((booked.at - session.now) / 3)
    for (; session.now < booked.at; session.now += waits) {
      const answer = await caller.consume(1)
      assert.deepEqual([answer.reason, answer.remaining], ['limit', 0])
      assert(answer.at >= booked.at && answer.resetAt >= booked.at)
      assert.equal((await caller.peek(0)).remaining, 0)
      if (session.now + waits >= booked.at) break
    }
  })
}

/**
 * Consumes what remains of a key, so that the next call must wait. Where more remains than `mostCost`, the largest cost that the
 * store takes, it does nothing: the laws then find that a call passes at once.
 */
async function useUp(caller: Caller, mostCost: number): Promise<void> {
  const { remaining } = await caller.peek(1)
  if (remaining <= mostCost) await caller.consume(remaining)
}
