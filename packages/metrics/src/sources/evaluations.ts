import type { Answer, Decision, Policy } from '@sluice/core'

/** What a decision of any copy of @sluice/core holds under registered symbols, so that reading it allocates nothing. */
interface Inside {
  readonly [POLICIES]: readonly Policy[]
  readonly [ANSWER]: Answer
}

const POLICIES: unique symbol = Symbol.for('sluice.policies') as never
const ANSWER: unique symbol = Symbol.for('sluice.answer') as never

export function policiesOf(decision: Decision): readonly Policy[] {
  return (decision as unknown as Inside)[POLICIES]
}

export function answerOf(decision: Decision): Answer {
  return (decision as unknown as Inside)[ANSWER]
}
