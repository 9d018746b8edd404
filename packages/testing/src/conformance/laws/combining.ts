import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import type { Answer } from '@sluice/core/store'
import { operationOf } from '../operation.js'
import { expectEqualKeys, law, type Subject } from '../law.js'
import { options } from '../numbers.js'
import { starts, traffic } from '../traffic.js'

/**
 * Declares the laws of two policies on one key: a call is charged under both, or under none. The second policy is of any shape
 * (`other`), with numbers of its own. The first law compares a key under both with two keys under one policy each, which are
 * charged only where the call on both passes: its answer must be made of theirs. `mostCostWith` is the largest cost that the
 * store takes for both shapes. `at` is the earliest instant at which a cost passes, `nextUnitAt` that of one unit more than
 * remains.
 */
export function combining(subject: Subject): void {
  aListOfPoliciesAnswersAsEachAlone(subject)
  noPolicyIsChargedWhenOneDenies(subject)
}

/**
 * A law: a key under two policies (`together`) answers what two keys, each under one of them (`alone`), answer combined: a call passes
 * at the later of their instants, and is denied if one of them denies it. The two get only the calls that pass on the first key.
 */
function aListOfPoliciesAnswersAsEachAlone(subject: Subject): void {
  const scenario = callsUnderTwoPolicies(subject)
  law(
    subject,
    'answers for a list of policies what each of them answers alone',
    scenario,
    async (session, { numbers: [own, others], other, steps }) => {
      const policies = [subject.shape.factory(own), other.factory(others)] as const
      const together = session.caller(policies)
      const alone = policies.map((policy) => session.caller([policy]))
      for (const step of steps) {
        await together.peek(1)
        const operation = operationOf(
          step,
          session.now,
          policies,
          together.known,
          subject.mostCostWith(other),
        )
        session.now = operation.now
        const before = await Promise.all(alone.map((caller) => caller.peek(operation.cost)))
        const answer = await together.perform(operation)
        if (typeof answer === 'object') {
          assert.equal(answer.at, Math.max(...before.map(({ at }) => at)))
          assert.equal(
            !answer.reason,
            before.every(({ reason }) => !reason),
          )
          if (answer.nextUnitAt !== undefined)
            assert.equal(answer.nextUnitAt, (await together.peek(answer.remaining + 1)).at)
        }
        if (typeof answer !== 'object' || (!answer.reason && operation.kind === 'consume')) {
          for (const caller of alone) await caller.perform(operation)
        }
        const after = await Promise.all(alone.map((caller) => caller.peek(1)))
        expectCombined(await together.peek(1), after)
      }
    },
  )
}

/**
 * A law: if one of the two policies of a key denies a call, the other is not charged either, whichever is declared first. After
 * denied calls, the key must answer as a second one (`twin`) that did not get these calls.
 */
function noPolicyIsChargedWhenOneDenies(subject: Subject): void {
  const scenario = callsUnderTwoPolicies(subject)
  law(
    subject,
    'charges none of the policies when one refuses',
    scenario,
    async (session, { numbers: [own, others], other }) => {
      const [roomy, strict] = [subject.shape.factory(own), other.factory(others)]
      for (const policies of [
        [roomy, strict],
        [strict, roomy],
      ]) {
        const [caller, twin] = [session.caller(policies), session.caller(policies)]
        const mostCost = subject.mostCostWith(other)
        const most = Math.min(roomy.capacity, strict.capacity, mostCost)
        // The smaller capacity is used up, so one of the policies denies a unit more, or a cost of the larger capacity.
        for (const each of [caller, twin]) await each.consume(most)
        const all = Math.min(Math.max(roomy.capacity, strict.capacity), mostCost)
        for (const cost of [1, 1, all]) {
          if ((await caller.peek(cost)).reason) assert((await caller.consume(cost)).reason)
        }
        await expectEqualKeys(caller, twin)
      }
    },
  )
}

/**
 * Asserts that the answer to a key under several policies is made of the answers to keys under each of them: the latest instant
 * `at`, the least remaining, the latest `resetAt`. Binding is the policy with the longest wait of a denied call, with the least
 * remaining of an allowed one. `parts` lists three numbers of each policy, in their order.
 */
function expectCombined(answer: Answer, each: readonly Answer[]): void {
  const [waits, remaining] = [each.map(({ at }) => at), each.map((one) => one.remaining)]
  const [longest, least] = [Math.max(...waits), Math.min(...remaining)]
  assert.deepEqual([answer.at, answer.remaining], [longest, least])
  assert.equal(answer.resetAt, Math.max(...each.map(({ resetAt }) => resetAt)))
  assert.equal(answer.binding, answer.reason ? waits.indexOf(longest) : remaining.indexOf(least))
  assert.deepEqual(
    [...answer.parts!],
    each.flatMap((one) => [one.at, one.remaining, one.resetAt]),
  )
}

/**
 * Draws what a law about two policies needs: a second shape (an algorithm in one of its variants), the `numbers` (limit, window and so
 * on) of both policies, the instant at which the clock starts, and the calls of a key under both (`steps`).
 */
function callsUnderTwoPolicies(subject: Subject) {
  return fc.constantFrom(...subject.shapes).chain((other) =>
    fc.record({
      numbers: fc.tuple(options(subject.shape), options(other)),
      other: fc.constant(other),
      start: starts,
      steps: traffic({ kinds: { consume: 5, peek: 1, refund: 1, charge: 1 }, most: 10 }),
    }),
  )
}
