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
  /** The key to be held, if it is not that of the call. */
  readonly key?: string
  readonly status?: number
}

export const ACCEPTED: Verdict = { answer: 'served', pauseMs: 0, again: false }
export const UNANSWERED: Verdict = { answer: 'none', pauseMs: 0, again: false }

/** What became of an attempt: its verdict, and what the queue made of that. */
export interface Ending extends Verdict {
  /** For adaptive limits. */
  readonly outcome: CallOutcome
  readonly tookMs: number
  /** Milliseconds until the next attempt at the earliest; or why there is none although the verdict asks for one. */
  readonly delayMs: number
  readonly givenUp?: 'budget' | 'maxWait' | undefined
}

/** Of an attempt that had no verdict. */
export const UNJUDGED: Ending = { ...UNANSWERED, outcome: 'failed', tookMs: 0, delayMs: 0 }
