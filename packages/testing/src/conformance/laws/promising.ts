import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { operationOf } from '../operation.js'
import { law, type Subject } from '../law.js'
import { options } from '../numbers.js'
import { ruleOf } from '../rule.js'
import { starts, traffic } from '../traffic.js'

/**
 * Declares the laws that an algorithm says of itself what it keeps (`Algorithm.bounds`), as advice about limits is computed from
 * that. Its `most` is the bound of the model for the worst place of a half-open span; what asks within its `reach` is never denied;
 * and its `scale` is no further from the reach than a window.
 */
export function promising(subject: Subject): void {
  theStatedMostIsTheBoundOfTheModel(subject)
  aKeyIsNotDeniedItsCapacityInEachReach(subject)
  theScaleIsAtMostAWindowBelowTheReach(subject)
}

/**
 * A law: `bounds.most`, the most units that an algorithm says it lets pass in a span of time of a given length (`span`), is what its
 * model, the contract written out naively, lets pass in the worst span of that length. Spans are tried that begin just before the
 * end of a window or bucket. The length is drawn, in windows and a part of one, and `off` microseconds beside that.
 */
function theStatedMostIsTheBoundOfTheModel(subject: Subject): void {
  const { factory, model } = subject.shape
  law(
    subject,
    'says the most that passes in any half-open span',
    fc.record({
      options: options(subject.shape),
      start: starts,
      windows: fc.integer({ min: 0, max: 4 }),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      off: fc.integer({ min: -1, max: 2 }),
    }),
    async (session, { options: numbers, windows, part, off }) => {
      const policy = factory(numbers)
      const rule = ruleOf(model, numbers)
      const span = Math.max(1, Math.floor((windows + part) * policy.window) + off)
      const most = policy.algorithm.bounds.most(policy, span)
      // The span holds the instants from `from` on; a window or bucket that ends with the first of them is the worst place.
      const { window, buckets, algorithm } = policy
      const windowLengths = [window, window / buckets, algorithm.bounds.scale(policy)].filter(
        Number.isInteger,
      )
      const lastInstants = windowLengths.map((length) => session.now - (session.now % length) + length - 1)
      const bounds = [session.now, ...lastInstants].map((from) =>
        Number(model.bound(rule, BigInt(from), BigInt(from + span - 1))),
      )
      const worst = Math.max(...bounds)
      if (model.onlyWindow) {
        // Windows of several lengths: the most comes from the shortest.
        assert(most >= worst && most <= worst + 2 * policy.limit, `most is ${most}, ${worst} can pass`)
        return
      }
      // Products beyond 2^53 are rounded.
      const isExact = policy.limit * span <= 2 ** 53
      const tolerance = isExact ? 0 : Math.max(1, worst * 2 ** -50)
      assert(Math.abs(most - worst) <= tolerance, `most is ${most}, where the model's bound is ${worst}`)
    },
  )
}

/**
 * A law: a key that asks for no more than its capacity within each `reach` is never denied. A reach is the time, in microseconds,
 * within which a key that is used up is full again. Each drawn step moves the clock; a call asks for a few units, or for all that
 * the calls within the last reach have left of the capacity.
 */
function aKeyIsNotDeniedItsCapacityInEachReach(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'denies nothing to a key that asks for its capacity in each reach at most',
    fc.record({
      options: options(subject.shape),
      start: starts,
      steps: traffic({ kinds: { consume: 1 }, most: 30 }),
    }),
    async (session, { options: numbers, steps }) => {
      const policy = factory(numbers)
      const caller = session.caller([policy])
      const reach = policy.algorithm.bounds.reach(policy)
      const calls: { at: number; cost: number }[] = []
      for (const step of steps) {
        const { now } = operationOf(step, session.now, [policy], caller.known, subject.mostCost)
        session.now = now
        const asked = calls.reduce((sum, { at, cost }) => (at > now - reach ? sum + cost : sum), 0)
        const left = policy.capacity - asked
        const isForAll = step.parts % 2 === 1 // half of the calls: this law has no other use of the drawn number
        const cost = Math.min(isForAll ? left : Math.min(step.parts, left), subject.mostCost)
        if (cost === 0) continue
        assert.equal((await caller.consume(cost)).reason, undefined)
        calls.push({ at: now, cost })
      }
    },
  )
}

/**
 * A law about the two times, in microseconds, that an algorithm names: `scale`, the longest time in which calls affect each other,
 * and `reach`, within which a key that is used up is full again. They differ by at most a window and a tick, the unit in which the
 * algorithm counts time.
 */
function theScaleIsAtMostAWindowBelowTheReach(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'names a scale that is at most a window and a tick below its reach',
    fc.record({ options: options(subject.shape), start: starts }),
    async (session, { options: numbers }) => {
      const policy = factory(numbers)
      const { reach, scale } = policy.algorithm.bounds
      assert(scale(policy) <= reach(policy))
      assert(reach(policy) <= Math.ceil(scale(policy)) + policy.window + policy.tick)
      // What a key has left is back within its reach.
      const caller = session.caller([policy])
      await caller.consume(Math.min(policy.capacity, subject.mostCost))
      assert((await caller.peek(0)).resetAt - session.now <= reach(policy))
    },
  )
}
