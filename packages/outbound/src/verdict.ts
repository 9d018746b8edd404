import type { CallOutcome } from '@sluice/core'

/**
 * How the other side answered: it served the call; refused it because of a limit (429), or because it is overloaded (503, 529);
 * answered in a way that says nothing about either; or not at all.
 */
export type AnswerKind = 'served' | 'limited' | 'overloaded' | 'other' | 'none'

/** The meaning of an attempt's end for the limit, and whether another attempt follows. */
export interface Verdict {
  readonly answer: AnswerKind
  /** Milliseconds for which no call may go out: 0 for none, undefined after a refusal that does not say how long. */
  readonly pauseMs: number | undefined
  /** Milliseconds until the next attempt at the earliest; false: this outcome is final. */
  readonly again: number | false
  /** Why no other attempt follows a refusal: no wait cures it, the budget is spent, or `maxWait` would be over. */
  readonly givenUp?: 'budget' | 'maxWait' | 'final' | undefined
  /** The key to be held, if it is not that of the call. */
  readonly key?: string
  readonly status?: number
}

export const ACCEPTED: Verdict = { answer: 'served', pauseMs: 0, again: false }
export const UNANSWERED: Verdict = { answer: 'none', pauseMs: 0, again: false }
/** Of a refusal that no wait cures, such as one for want of credit. It says nothing about the rate. */
export const FINAL: Verdict = { answer: 'other', pauseMs: 0, again: false, givenUp: 'final' }

/**
 * Whether an outcome is a refusal: `true`; `'final'`, one that no wait cures; `'none'`, none although its status or its headers say
 * so. `false` and undefined leave that to those.
 */
export type RefusalKind = boolean | 'final' | 'none' | undefined

/** What became of an attempt: its verdict, and what the queue made of that. */
export interface Ending {
  readonly verdict: Verdict
  /** For adaptive limits. */
  readonly outcome: CallOutcome
  readonly tookMs: number
  /** Milliseconds until the next attempt at the earliest. */
  readonly delayMs: number
  readonly givenUp: Verdict['givenUp']
}

/** Of an attempt that had no verdict. */
export const UNJUDGED: Ending = {
  verdict: UNANSWERED,
  outcome: 'failed',
  tookMs: 0,
  delayMs: 0,
  givenUp: undefined,
}
