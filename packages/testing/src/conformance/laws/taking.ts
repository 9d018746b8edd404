import { deepStrictEqual } from 'node:assert'
import * as fc from 'fast-check'
import { operationOf } from '../operation.js'
import { expectEqualAnswers, expectEqualKeys, law, comparable, type Subject } from '../law.js'
import { options } from '../numbers.js'
import { starts, traffic } from '../traffic.js'

/** Calls without a block, a hold or a booking, which a store may decide in a way of its own. */
const PLAIN = { consume: 10, peek: 1, refund: 2, release: 2, charge: 2 }

/**
 * Declares the law that `consume` decides as a booking that may not wait, since algorithms may have a faster way for it. Two keys
 * get the same drawn calls, but where one consumes, the other books with a wait of 0; all answers, and the keys after each call,
 * must be the same. The clock moves between calls as drawn, so most of them find units of earlier ones. `comparable` is the part of an
 * answer that is compared.
 */
export function taking(subject: Subject): void {
  const { factory } = subject.shape
  const drawn = fc.record({
    options: options(subject.shape),
    start: starts,
    steps: traffic({ kinds: PLAIN, most: 16 }),
  })

  law(
    subject,
    'decides a plain call as a booking that may not wait',
    drawn,
    async (session, { options, steps }) => {
      const policies = [factory(options)]
      const [plain, booked] = [session.caller(policies), session.caller(policies)]
      for (const step of steps) {
        await plain.peek(1)
        const operation = operationOf(step, session.now, policies, plain.known, subject.mostCost)
        const isPlainCall = operation.kind === 'consume' && operation.cost > 0
        const answer = await plain.perform(operation)
        const general = await booked.perform(
          isPlainCall ? { ...operation, kind: 'book', maxWait: 0 } : operation,
        )
        deepStrictEqual(comparable(general), comparable(answer))
        await expectEqualAnswers(plain, booked)
      }
      await expectEqualKeys(plain, booked)
    },
  )
}
