import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import type { DatedCharge } from '@sluice/core/store'
import { operationOf } from '../operation.js'
import { ANY_WAIT, expectEqualKeys, law, afterCalls, replay, type Subject } from '../law.js'
import { tiers } from '../numbers.js'
import { type Options, type Rule, ruleOf, ticksOf } from '../rule.js'
import type { Caller } from '../session.js'
import { Trace } from '../trace.js'
import { HISTORY, starts, traffic } from '../traffic.js'

/** A log gives back what is among so many of its newest entries. */
const NEWEST = 1000

const MIXED = { consume: 8, book: 4, release: 6, cancel: 2 }

/**
 * Declares the laws of a release, which gives units of one charge back as far as they still count. Several laws compare one key
 * with a second one, which has the same past or was never used. The first law checks the promise of the algorithm, the most units
 * that may pass in any span. For this it notes in a `Trace` all that was let through and given back, under one list of limits, or
 * under two, as when two processes call the key with different limits. `isLate` marks shapes in which a release may free some of
 * its units only together with a later release. There the trace takes off all units that a release asked to give back, as the
 * store does not report those that come later.
 */
export function releasing(subject: Subject): void {
  thePromiseHoldsNetOfReleases(subject)
  aChargeComesBackWholeAtItsInstant(subject)
  aFullKeyGetsNothingBack(subject)
  aFullKeyIsAsOneNeverUsed(subject)
  aReleaseTakesNothingFromChargesAfterAReset(subject)
  releasesNeverMoveABookingForward(subject)
}

/**
 * A law: after drawn calls (`steps`), some of which give units back, no span of time has kept more units than the algorithm promises:
 * under one list of limits, or under two (tiers), as when two processes call the key with different limits. A Trace notes what was
 * admitted and given back, and its `check` throws if a span holds more. `isLate` marks algorithms in which a release may free some of
 * its units only later, so that all units are noted that were asked for.
 */
function thePromiseHoldsNetOfReleases(subject: Subject): void {
  const { factory, model, variant } = subject.shape
  const isLate = model.releasesLater?.(variant) === true
  const kept = fc.record({
    tiers: tiers(subject.shape, 2),
    start: starts,
    steps: traffic({ kinds: MIXED, tiers: 2, most: 40 }),
  })
  for (const [whose, used] of [
    ['one list of numbers', 1],
    ['the numbers of two processes', 2],
  ] as const) {
    law(
      subject,
      `keeps its promise for what was kept in every span, under ${whose}`,
      kept,
      async (session, { tiers: numbers, steps }) => {
        const lists = numbers.slice(0, used)
        const caller = session.caller(...lists.map((options) => [factory(options)]))
        const trace = new Trace(widest(subject, lists))
        /** Consumes all that is free, at most the largest cost that the store takes, and notes the charge in the trace. */
        const takeAll = async (): Promise<void> => {
          const cost = Math.min((await caller.peek(1)).remaining, subject.mostCost)
          if (cost > 0)
            trace.admitted(BigInt((await caller.consume(cost)).at), BigInt(cost), caller.charges.at(-1))
        }
        for (const step of steps) {
          const tier = step.tier % used
          await caller.peek(1, tier)
          const { known, tiers: policies } = caller
          const operation = operationOf(
            { ...step, tier },
            session.now,
            policies[tier]!,
            known,
            subject.mostCost,
          )
          const charge = caller.charges[operation.charge]
          const place = caller.bookings[operation.booking]
          const returned = await caller.perform(operation)
          if (operation.kind === 'release' && charge)
            trace.released(charge, isLate ? operation.cost : (returned as number))
          else if (operation.kind === 'cancel' && returned !== undefined) trace.left(place!)
          else if (typeof returned === 'object' && !returned.reason) {
            trace.admitted(BigInt(returned.at), BigInt(operation.cost), caller.charges.at(-1))
          }
          // Where a release freed too many units, that shows only once they are taken.
          if (operation.kind === 'release' || operation.kind === 'cancel') await takeAll()
        }
        // What was booked has passed by then, so a last call takes all that is free.
        session.now = Math.max(session.now, ...caller.charges.map(({ at }) => at))
        await takeAll()
        trace.check()
      },
    )
  }
}

/**
 * A law: a charge that is released at the instant at which it was made comes back whole, and no more: the key (`caller`) then has at
 * most as much left as a second key with the same past that was not charged (`untouched`).
 */
function aChargeComesBackWholeAtItsInstant(subject: Subject): void {
  const { factory, model, variant } = subject.shape
  const isLate = model.releasesLater?.(variant) === true
  law(
    subject,
    'gives a charge back whole at its own instant',
    afterCalls(subject),
    async (session, scenario) => {
      const [caller, untouched] = [
        session.caller([factory(scenario.options)]),
        session.caller([factory(scenario.options)]),
      ]
      await replay(subject, scenario.steps, caller, untouched)
      const { remaining } = await caller.peek(1)
      const cost = Math.min(remaining, subject.mostCost, NEWEST)
      if (cost === 0) return
      await caller.consume(cost)
      assert.equal(await caller.release(caller.charges.at(-1)!, cost), cost)
      const after = (await caller.peek(1)).remaining
      assert(after >= remaining)
      // A debt may be kept up to one tick longer than it lasts, by rounding. Counted anew from slots, it no longer is.
      if (isLate) session.now += Number(ticksOf(model, scenario.options))
      assert(after <= (await untouched.peek(1)).remaining)
    },
  )
}

/**
 * A law: once a key is full again (`resetAt`), the release of any earlier charge gives nothing back, and leaves the key as a second
 * one with the same past (`twin`).
 */
function aFullKeyGetsNothingBack(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'gives nothing back once the key is full again',
    afterCalls(subject),
    async (session, scenario) => {
      const policies = [factory(scenario.options)]
      const [released, twin] = [session.caller(policies), session.caller(policies)]
      await replay(subject, scenario.steps, released, twin)
      session.now = (await released.peek(1)).resetAt
      for (const charge of released.charges.slice())
        assert.equal(await released.release(charge, charge.cost), 0)
      await expectEqualKeys(released, twin)
    },
  )
}

/**
 * A law: a key that is full again (`used`) answers drawn calls as one that was never used (`fresh`), whatever calls, refunds and limits
 * (two tiers) it has seen before, and its old charges give nothing back.
 */
function aFullKeyIsAsOneNeverUsed(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'decides a key that is full again as one that was never used, whatever has drained or refunded it',
    fc.record({
      tiers: tiers(subject.shape, 2),
      start: starts,
      before: traffic({ kinds: { ...HISTORY, charge: 3 }, tiers: 2 }),
      isRefunded: fc.boolean(),
      after: traffic({ kinds: { consume: 6, charge: 2, refund: 1, release: 3 }, tiers: 2, most: 6 }),
    }),
    async (session, { tiers: numbers, before, isRefunded, after }) => {
      const lists = numbers.map((options) => [factory(options)])
      const [used, fresh] = [session.caller(...lists), session.caller(...lists)]
      await replay(subject, before, used)
      if (isRefunded) await used.refund(subject.mostCost)
      // Full under both lists: from here on the key must be as one that was never used, and its old charges give nothing back.
      for (const tier of [0, 1]) session.now = (await used.peek(1, tier)).resetAt
      const old = used.charges.splice(0)
      used.bookings.length = 0
      await replay(subject, after, used, fresh)
      // The charges after that, beside those of the fresh key; behind them the old ones, which are released on both keys.
      const now = used.charges.slice()
      for (const [i, charge] of [...fresh.charges, ...old].entries()) {
        const [returned, expected] = [
          await used.release(now[i] ?? charge, charge.cost),
          await fresh.release(charge, charge.cost),
        ]
        assert.equal(returned, expected)
      }
      await expectEqualKeys(used, fresh)
    },
  )
}

/**
 * A law: the release of a charge from before a reset, which discards the state of a key, gives nothing back, so that it takes nothing
 * from charges that came later. The key (`released`) then answers as a second one without that release (`twin`).
 */
function aReleaseTakesNothingFromChargesAfterAReset(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'leaves the charges that others made after the state was lost',
    fc.record({
      first: afterCalls(subject),
      start: starts,
      later: traffic({ kinds: { consume: 3, book: 1 } }),
    }),
    async (session, { first, later }) => {
      const policies = [factory(first.options)]
      const [released, twin] = [session.caller(policies), session.caller(policies)]
      await replay(subject, first.steps, released, twin)
      const lost: readonly DatedCharge[] = released.charges.slice()
      session.now += 1
      for (const caller of [released, twin]) {
        await caller.reset()
        caller.charges.length = 0
      }
      await replay(subject, later, released, twin)
      for (const charge of lost) assert.equal(await released.release(charge, charge.cost), 0)
      await expectEqualKeys(released, twin)
    },
  )
}

/**
 * A law: if two calls are booked for later on a key without units left, the release of all charges but the last booking lets neither
 * that booking nor a call after it pass sooner than at its instant (`end`).
 */
function releasesNeverMoveABookingForward(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'never moves a booking or the last booked instant forward',
    afterCalls(subject, MIXED),
    async (session, { options, steps }) => {
      const caller = session.caller([factory(options)])
      await replay(subject, steps, caller)
      await useUp(caller, subject.mostCost)
      // Two bookings lie ahead; all other charges and the first booking are released behind them.
      const places = [await caller.book(1, ANY_WAIT), await caller.book(1, ANY_WAIT)]
      const end = places.at(-1)!.at
      const [first, last] = places.map(({ booking }) => booking)
      for (const charge of caller.charges.slice()) {
        if (charge !== last) await caller.release(charge, charge.cost)
      }
      assert.deepEqual([first?.at, last?.at], [places[0]!.booking?.at, end])
      assert.equal(await caller.confirm(last!), 'stands')
      assert((await caller.peek(1)).at >= end)
      assert((await caller.book(1, ANY_WAIT)).at >= end)
    },
  )
}

/**
 * The policy whose promise covers calls under any of these lists of limits: with the largest limit and the largest capacity of
 * them. Window and shape are the same in all.
 */
function widest({ shape: { model } }: Subject, lists: readonly Options[]): Rule {
  const rules = lists.map((options) => ruleOf(model, options))
  const most = (pick: (rule: Rule) => bigint) => rules.map(pick).reduce((a, b) => (b > a ? b : a))
  return { ...rules[0]!, limit: most(({ limit }) => limit), capacity: most(({ capacity }) => capacity) }
}

/** Consumes all that is left of a key, in calls of at most `mostCost` units, the most that the store takes in one. */
async function useUp(caller: Caller, mostCost: number): Promise<void> {
  for (let left = (await caller.peek(1)).remaining; left > 0; left -= mostCost) {
    await caller.consume(Math.min(left, mostCost))
  }
}
