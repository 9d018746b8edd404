import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { operationOf } from '../operation.js'
import { expectEqualKeys, law, replay, comparable, type Subject } from '../law.js'
import { tiers } from '../numbers.js'
import { Session } from '../session.js'
import { HISTORY, starts, traffic } from '../traffic.js'

/**
 * Declares the laws that limits may change from call to call, and that keys have nothing to do with each other. A key is called
 * under two lists of one policy, of the same shape and with other numbers (tiers). What was consumed belongs to the key and not to
 * a list.
 */
export function limits(subject: Subject): void {
  useIsMeasuredAgainstTheLimitOfTheCall(subject)
  aChangedLimitForgetsNothing(subject)
  aSmallerLimitKeepsWhatWasConsumed(subject)
  keysAreKeptApart(subject)
  aResetForgetsTheKey(subject)
}

/** The two lists under which a key is called, by their index; a call that names none comes under the first. */
const [FIRST_LIST, SECOND_LIST] = [0, 1]

/**
 * A law: a key may be called under two lists of policies with other limits, such as those of two plans (tiers). What remains is the
 * capacity of the list that a call brings, less what was consumed under either list.
 */
function useIsMeasuredAgainstTheLimitOfTheCall(subject: Subject): void {
  const { shape } = subject
  const scenario = keyUnderTwoLists(shape)
  law(
    subject,
    'measures what was consumed against the numbers of the call that asks',
    scenario,
    async (session, { tiers: numbers }) => {
      const [first, second] = numbers.map((options) => shape.factory(options))
      const caller = session.caller([first!], [second!])
      const used = Math.min(Math.ceil(first!.capacity / 2), subject.mostCost)
      await caller.consume(used)
      // Asked under the first list, the second, and the first again: each subtracts the same units from its own capacity.
      for (const list of [FIRST_LIST, SECOND_LIST, FIRST_LIST]) {
        const { remaining } = await caller.peek(1, list)
        assert.equal(remaining, Math.max(0, [first!, second!][list]!.capacity - used))
      }
    },
  )
}

/**
 * A law: peeks and denied calls under another list of limits leave a key as a second one with the same past that is called under one list
 * alone.
 */
function aChangedLimitForgetsNothing(subject: Subject): void {
  const { shape } = subject
  const scenario = keyUnderTwoLists(shape)
  law(
    subject,
    'forgets nothing when a limit is lowered and raised again',
    scenario,
    async (session, { tiers: numbers, steps }) => {
      const [first, second] = numbers.map((options) => shape.factory(options))
      const [changed, steady] = [session.caller([first!], [second!]), session.caller([first!])]
      await replay(subject, steps, changed, steady)
      for (const cost of [1, Math.min(second!.capacity, subject.mostCost)]) {
        await changed.peek(cost, SECOND_LIST)
        if ((await changed.peek(cost, SECOND_LIST)).reason) await changed.consume(cost, SECOND_LIST)
      }
      await expectEqualKeys(changed, steady)
    },
  )
}

/**
 * A law: a charge under a list with a smaller limit does not lower the count of what a larger limit has let through before on the same
 * key.
 */
function aSmallerLimitKeepsWhatWasConsumed(subject: Subject): void {
  const { shape } = subject
  const scenario = keyUnderTwoLists(shape)
  law(
    subject,
    'keeps what was consumed when more is charged under a smaller limit',
    scenario,
    async (session, { tiers: numbers }) => {
      const policies = numbers.map((options) => shape.factory(options))
      const [small, large] = policies.sort((a, b) => a.capacity - b.capacity)
      const caller = session.caller([small!], [large!])
      if (large!.capacity > subject.mostCost) return
      await caller.charge(large!.capacity, SECOND_LIST)
      await caller.charge(1, FIRST_LIST)
      assert.equal((await caller.peek(1, SECOND_LIST)).remaining, 0)
    },
  )
}

/** A law: a key (`quiet`) that shares a store with a much called one (`busy`) answers as it does alone in another store. */
function keysAreKeptApart(subject: Subject): void {
  const { shape } = subject
  const scenario = keyUnderTwoLists(shape)
  law(subject, 'keeps keys apart', scenario, async (session, { tiers: [options], start, steps }) => {
    const policies = [shape.factory(options!)]
    const [busy, quiet] = [session.caller(policies), session.caller(policies)]
    // The quiet key must answer beside a busy one of the same store as it does alone in another store.
    const elsewhere = await Session.open(subject.openStore, start)
    const alone = elsewhere.caller(policies)
    for (const step of steps) {
      await quiet.peek(1)
      const operation = operationOf(step, session.now, policies, quiet.known, subject.mostCost)
      await busy.perform(operation)
      const [answer, answerAlone] = [await quiet.perform(operation), await alone.perform(operation)]
      assert.deepEqual(comparable(answer), comparable(answerAlone))
    }
    await elsewhere.close()
  })
}

/** A law: a key that was charged, blocked and held (paused), and is then reset, answers as one that was never used (`fresh`). */
function aResetForgetsTheKey(subject: Subject): void {
  const { shape } = subject
  const scenario = keyUnderTwoLists(shape)
  law(subject, 'forgets a key that is reset', scenario, async (session, { tiers: [options], steps }) => {
    const policies = [shape.factory(options!)]
    const [caller, fresh] = [session.caller(policies), session.caller(policies)]
    await replay(subject, steps, caller)
    await caller.charge(1)
    await caller.block(1e6)
    await caller.hold(1e6)
    await caller.reset()
    await expectEqualKeys(caller, fresh)
  })
}

/**
 * Draws what a law about limits that change needs: two tiers, which are numbers (limit, capacity) for one policy, the instant at which
 * the clock starts, and the calls that the key has had (`steps`).
 */
function keyUnderTwoLists(shape: Subject['shape']) {
  return fc.record({
    tiers: tiers(shape, 2, 'in all'),
    start: starts,
    steps: traffic({ kinds: HISTORY, most: 8 }),
  })
}
