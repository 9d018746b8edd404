import type { Admission } from './admission.js'

/** What a call does, in whatever client. */
export interface Task<T> {
  start(admission: Admission): T | PromiseLike<T>
  /** Decides what follows an attempt; `attempt` counts from 1. */
  judge(outcome: TaskOutcome<T>, attempt: number): Verdict
  /** Hands the result to the caller, and releases the permit with `admission.release`, now or later. */
  deliver(value: T, admission: Admission): T
  /** Drops a result that no caller gets: another attempt follows, or `judge` or `deliver` threw. */
  discard(value: T): void
}

/** How one attempt ended. */
export type TaskOutcome<T> = { readonly value: T } | { readonly error: unknown }

/** What an outcome means for the limit, and whether another attempt follows. */
export interface Verdict {
  readonly succeeded: boolean
  /** Milliseconds for which no call may go out: 0 for none, undefined after a refusal that does not say how long. */
  readonly pauseMs: number | undefined
  /** Milliseconds until the next attempt at the earliest; false: this outcome is final. */
  readonly again: number | false
  /** The key to be held, if it is not that of the call. */
  readonly key?: string
  readonly status?: number
}

/** A failure that has nothing to do with limits: the caller gets it. */
export const FINAL: Verdict = { succeeded: false, pauseMs: 0, again: false }

export async function outcomeOf<T>(task: Task<T>, admission: Admission): Promise<TaskOutcome<T>> {
  try {
    return { value: await task.start(admission) }
  } catch (error) {
    return { error }
  }
}
