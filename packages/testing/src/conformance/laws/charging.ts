import { strict as assert } from 'node:assert'
import { ANY_WAIT, expectEqualKeys, law, lawsAfter, afterCalls, replay, type Subject } from '../law.js'

/**
 * Declares the laws of what a call takes from a key: its cost if it fits, and nothing if it is denied. `lawOfKey` declares a test on
 * a new key with a random past of calls behind it; `lawOfTwins` declares one on two keys with the same past, which must also give
 * the same answers in the end: so what is done to one of them alone must leave no trace. Of an answer, `reason` says why a call
 * was denied (undefined if it was allowed) and `at` is the earliest instant, in microseconds, at which its cost passes; Infinity
 * if it never does. `mostCost` is the largest cost that the store takes: laws skip larger ones.
 */
export function charging(subject: Subject): void {
  const { lawOfKey, lawOfTwins } = lawsAfter(subject, afterCalls(subject))
  aDeniedCallChangesNothing(subject)
  aCostAboveTheCapacityNeverPasses(subject)
  lawOfTwins('only reads at a cost of 0', async (read, untouched, { session }) => {
    for (let i = 0; i < 3; i++) {
      const answer = await read.consume(0)
      assert.deepEqual([answer.reason, answer.at], [undefined, session.now])
      assert.equal(answer.remaining, (await untouched.peek(1)).remaining)
    }
  })
  exactlyTheRemainingUnitsPass(subject)
  lawOfKey('takes the cost from what remains', async (caller) => {
    const { remaining } = await caller.peek(1)
    const cost = Math.min(Math.ceil(remaining / 2), subject.mostCost)
    assert.equal((await caller.consume(cost)).remaining, remaining - cost)
    assert.equal((await caller.peek(1)).remaining, remaining - cost)
  })
}

/**
 * A law: a denied call, whether it may wait or not, leaves a key as a second one with the same past that was only peeked at (`twin`),
 * and answers what the peek does. Costs above what the store takes (`mostCost`) are left out.
 */
function aDeniedCallChangesNothing(subject: Subject): void {
  const { lawOfTwins } = lawsAfter(subject, afterCalls(subject))
  lawOfTwins('changes nothing when it denies', async (denied, twin, { session, policy }) => {
    const { remaining } = await denied.peek(1)
    for (const cost of [remaining + 1, policy.capacity, policy.capacity + 1]) {
      if (cost <= remaining || cost > subject.mostCost) continue
      const peeked = await twin.peek(cost)
      const answer = await denied.consume(cost)
      assert(answer.reason)
      assert.deepEqual(
        [answer.at, answer.remaining, answer.resetAt],
        [peeked.at, peeked.remaining, peeked.resetAt],
      )
      // A booking is refused too if its longest wait is a microsecond too short, or if its cost never passes.
      const tooShort = answer.at === Infinity ? ANY_WAIT : Math.max(0, answer.at - session.now - 1)
      const refused = await denied.book(cost, tooShort)
      assert(refused.reason && !refused.booking)
    }
  })
}

/** A law: a cost above the capacity is denied for ever, with the reason 'cost', and leaves the key as one that was not asked. */
function aCostAboveTheCapacityNeverPasses(subject: Subject): void {
  const { factory } = subject.shape
  law(
    subject,
    'never lets a cost above the capacity pass',
    afterCalls(subject),
    async (session, { options, steps }) => {
      const policy = factory(options)
      if (policy.capacity >= subject.mostCost) return
      const [asked, untouched] = [session.caller([policy]), session.caller([policy])]
      // First on a new key, then with a past.
      for (const history of [[], steps]) {
        await replay(subject, history, asked, untouched)
        for (const answer of [
          await asked.consume(policy.capacity + 1),
          await asked.peek(policy.capacity + 1),
          await asked.book(policy.capacity + 1, ANY_WAIT),
        ]) {
          assert.deepEqual([answer.reason, answer.at, answer.booking], ['cost', Infinity, undefined])
        }
      }
      await expectEqualKeys(asked, untouched)
    },
  )
}

/** A law: one unit more than `remaining` is denied, and exactly `remaining` units pass. */
function exactlyTheRemainingUnitsPass(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))
  lawOfKey('lets exactly the remaining units pass', async (caller) => {
    const { remaining } = await caller.peek(0)
    if (remaining >= subject.mostCost) return
    assert((await caller.consume(remaining + 1)).reason)
    const answer = await caller.consume(remaining)
    assert.deepEqual([answer.reason, answer.remaining], [undefined, 0])
    assert((await caller.consume(1)).reason)
  })
}
