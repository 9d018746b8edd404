import { strict as assert } from 'node:assert'
import { lawsAfter, afterCalls, type Subject } from '../law.js'

/**
 * Declares the law of a clock that is set back by less than the window: a key keeps what it has consumed, and is denied no longer
 * than it was to be. `lawOfKey` declares a test on a new key with a random past of calls behind it.
 */
export function settingBack(subject: Subject): void {
  const { lawOfKey } = lawsAfter(subject, afterCalls(subject))

  lawOfKey(
    'keeps what was consumed while the clock is set back by less than a window',
    async (caller, { session, policy }) => {
      await caller.charge(1)
      const written = session.now
      const { capacity } = policy
      /** The answers for one unit and for all. That of a call that passes has no instant here: it would be now. */
      const look = async () => {
        const answers = [await caller.peek(1), await caller.peek(capacity)] as const
        return answers.map(({ reason, remaining, resetAt, at }) => {
          return { reason, remaining, resetAt, deniedUntil: reason && at }
        })
      }
      const before = await look()
      session.setBack(policy.window - 1)
      assert.deepEqual(await look(), before)
      // A call that is denied then is denied until the instant that was announced, and a charge adds to what there is.
      const [ofOneUnit] = before as [(typeof before)[number], ...unknown[]]
      if (ofOneUnit.reason) assert.equal((await caller.consume(1)).at, ofOneUnit.deniedUntil)
      await caller.charge(1)
      session.now = written
      const { remaining } = await caller.peek(1)
      assert.equal(remaining, Math.max(0, ofOneUnit.remaining - 1))
    },
  )
}
