import type { Verdict } from './attempt.js'
import type { Turn } from './key-queue.js'

/** What happened to a call: what came, or why nothing did. */
export type Outcome<T> = { readonly value: T } | { readonly error: unknown }

/** A call, whatever it does. */
export interface Task<T> {
  start(turn: Turn): T | PromiseLike<T>
  /** `times`: how often the call was made. */
  judge(outcome: Outcome<T>, times: number): Verdict
  /** Hands over what came, and gives the place back with `turn.release`, now or later. */
  deliver(value: T, turn: Turn): T
  /** What came is of no use, as the call is made again or its outcome could not be judged. */
  discard(value: T): void
}

export async function outcomeOf<T>(task: Task<T>, turn: Turn): Promise<Outcome<T>> {
  try {
    return { value: await task.start(turn) }
  } catch (error) {
    return { error }
  }
}
