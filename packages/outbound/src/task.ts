import type { QueuedCall } from './call.js'

/** The steps of a call once it is its turn, as its client describes them. */
export interface Task<T> {
  /** Makes one attempt. */
  start(call: QueuedCall): T | PromiseLike<T>
  /** Decides what follows a result; without it, the other side has accepted the call. `attempt` counts from 1. */
  judge?(value: T, attempt: number): Verdict | Promise<Verdict>
  /** Decides what follows a failure; without it, failures have nothing to do with limits. */
  judgeFailure?(error: unknown, attempt: number): Verdict | Promise<Verdict>
  /** Hands the result to the caller, and releases the call when it is no longer under way; without it, it is released at once. */
  deliver?(value: T, call: QueuedCall): T
  /** Drops a result that no caller gets: another attempt follows, or `judge` or `deliver` threw. */
  discard?(value: T): void
}

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
