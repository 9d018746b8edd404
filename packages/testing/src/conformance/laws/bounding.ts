import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { operationOf } from '../operation.js'
import { ANY_WAIT, law, afterCalls, type Subject } from '../law.js'
import { options } from '../numbers.js'
import { ruleOf } from '../rule.js'
import type { Caller } from '../session.js'
import { Trace } from '../trace.js'
import { starts, traffic } from '../traffic.js'

/**
 * Declares the laws that no span of time lets more through than the algorithm promises, its bound. Each makes drawn calls on one
 * key and notes in a `Trace` what was admitted, at which instant, and what was refunded; `trace.check` then compares every span
 * between two calls with the bound of the model. The steps of a past give the clock its moves; `takeAll` takes the most that a
 * caller could. The last law is for algorithms that keep what was consumed as a debt, in which each unit is multiplied by the
 * length of the window so that it drains in whole numbers. For windows above an hour that length is counted in ticks of a
 * millisecond, as the products would grow too large; the coarser time must not let a unit pass early.
 */
export function bounding(subject: Subject): void {
  theBoundHoldsOverEverySpan(subject)
  theBoundHoldsWhenAllIsTaken(subject)
  theBoundHoldsWhenUnitsAreGivenBack(subject)
  const { model, variant } = subject.shape
  if (model.capacity && model.multiplied(variant))
    theBoundHoldsWhenATickIsAMillisecond(subject, model.capacity)
}

/**
 * A law: after drawn calls on a key, no span of time has admitted more units than the algorithm promises, less what was refunded. A
 * Trace notes each admitted call with its instant, and its `check` throws if a span holds more. Units that are charged without a
 * check ('charge') are not admitted, and are not noted.
 */
function theBoundHoldsOverEverySpan(subject: Subject): void {
  const { factory, model } = subject.shape
  const kinds = {
    'net of refunds': { consume: 6, book: 4, refund: 2 },
    'whatever is charged besides': { consume: 6, book: 4, charge: 2 },
  }
  for (const [what, mixed] of Object.entries(kinds)) {
    law(
      subject,
      `keeps its bound over every span, ${what}`,
      afterCalls(subject, mixed),
      async (session, { options: numbers, steps }) => {
        const caller = session.caller([factory(numbers)])
        const trace = new Trace(ruleOf(model, numbers))
        for (const step of steps) {
          await caller.peek(1)
          const operation = operationOf(step, session.now, caller.tiers[0]!, caller.known, subject.mostCost)
          const answer = await caller.perform(operation)
          if (operation.kind === 'refund') trace.refunded(BigInt(operation.now), BigInt(operation.cost))
          else if (typeof answer === 'object' && !answer.reason)
            trace.admitted(BigInt(answer.at), BigInt(operation.cost))
        }
        trace.check()
      },
    )
  }
}

/**
 * A law: the promise of an algorithm, the most units in any span of time, also holds for the greediest caller, who takes all that
 * remains at every instant at which he comes. The drawn steps only move the clock. A Trace notes what was taken, and its `check`
 * throws if a span holds more.
 */
function theBoundHoldsWhenAllIsTaken(subject: Subject): void {
  const { factory, model } = subject.shape
  const greedy = fc.record({
    options: options(subject.shape),
    start: starts,
    steps: traffic({ kinds: { peek: 1 }, most: 40 }),
  })
  law(
    subject,
    'keeps its bound when all that remains is taken at once, again and again',
    greedy,
    async (session, { options: numbers, steps }) => {
      const caller = session.caller([factory(numbers)])
      const trace = new Trace(ruleOf(model, numbers))
      for (const step of steps) {
        await caller.peek(1)
        session.now = operationOf(step, session.now, caller.tiers[0]!, caller.known).now
        trace.admitted(BigInt(session.now), await takeAll(caller, subject.mostCost))
      }
      trace.check()
    },
  )
}

/**
 * A law: the promise of an algorithm, the most units in any span of time, also holds if units are given back while calls are booked
 * for later: all is taken, calls are booked, two units are refunded, and at the last booked instant all is taken again. A Trace notes
 * all that, and its `check` throws if a span holds more.
 */
function theBoundHoldsWhenUnitsAreGivenBack(subject: Subject): void {
  const { factory, model } = subject.shape
  law(
    subject,
    'keeps its bound when units are given back behind bookings',
    afterCalls(subject, { consume: 1 }),
    async (session, { options: numbers, steps }) => {
      const caller = session.caller([factory(numbers)])
      const trace = new Trace(ruleOf(model, numbers))
      for (let i = 0; i < 2; i++) trace.admitted(BigInt(session.now), await takeAll(caller, subject.mostCost))
      // Books 1 and 3 units, then drawn numbers of them: of the steps nothing but `parts` is used.
      for (const { parts } of [{ parts: 1 }, { parts: 3 }, ...steps]) {
        const cost = Math.min(parts, caller.tiers[0]![0]!.capacity)
        const booked = await caller.book(cost, ANY_WAIT)
        if (!booked.reason) trace.admitted(BigInt(booked.at), BigInt(cost))
      }
      await caller.refund(2)
      trace.refunded(BigInt(session.now), 2n)
      session.now = caller.bookings.at(-1)?.at ?? session.now
      trace.admitted(BigInt(session.now), await takeAll(caller, subject.mostCost))
      trace.check()
    },
  )
}

/**
 * A law: the promise of an algorithm, the most units in any span of time, also holds where it counts time in milliseconds, as in
 * windows above an hour, and a call comes within one (`early` microseconds before the key is full). `capacity` names the algorithm's
 * option for the most units at once. A Trace notes what was taken, and its `check` throws if a span holds more.
 */
function theBoundHoldsWhenATickIsAMillisecond(subject: Subject, capacity: string): void {
  const { factory, model } = subject.shape
  const coarse = { ...subject.shape.variant, window: 3_600_010, limit: 700_000, [capacity]: 2 }
  law(
    subject,
    'keeps its bound when a tick is a millisecond and a call comes within the one that pays off the debt',
    fc.record({ start: starts, early: fc.integer({ min: 1, max: 999 }) }),
    async (session, { early }) => {
      const caller = session.caller([factory(coarse)])
      const trace = new Trace(ruleOf(model, coarse))
      // Each time all is taken: at the instant of a full key, up to a tick before it, and at it again.
      for (const before of [0, early, 0]) {
        session.now = (await caller.peek(1)).resetAt - before
        trace.admitted(BigInt(session.now), await takeAll(caller, subject.mostCost))
      }
      trace.check()
    },
  )
}

/**
 * Consumes all that is left of a key, or `mostCost`, the largest cost that the store takes, if that is less, and asserts that the
 * call passes. Returns the units.
 */
async function takeAll(caller: Caller, mostCost: number): Promise<bigint> {
  const cost = Math.min((await caller.peek(0)).remaining, mostCost)
  assert.equal((await caller.consume(cost)).reason, undefined)
  return BigInt(cost)
}
