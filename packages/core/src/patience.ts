import type { Duration } from './duration.js'
import { parseDuration } from './duration.js'
import { expected, PolicyError } from './errors.js'
import { withDeadline } from './resilience/deadline.js'
import { answerInstead, FAILURE_MODES, type FailureMode } from './resilience/failure-mode.js'
import type { Answer } from './stores/store.js'

export interface PatienceOptions {
  /**
   * What a call gets when the store cannot decide: 'allow', 'deny' (told apart from a denial by `degraded`) or 'throw'
   * (default). A memory store always decides.
   */
  readonly onStoreError?: FailureMode
  /** The longest the store may take to answer, 1 ms to 1 minute; default 50 ms. */
  readonly deadline?: Duration
}

/** How long a limiter waits for its store, and what it says when that was in vain. */
export class Patience {
  readonly #mode: FailureMode
  readonly #deadlineMs: number

  /** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
  constructor({ onStoreError = 'throw', deadline = '50ms' }: PatienceOptions) {
    if (!FAILURE_MODES.includes(onStoreError)) {
      throw expected(
        PolicyError,
        'INVALID_OPTION',
        "onStoreError must be 'allow', 'deny' or 'throw'",
        onStoreError,
      )
    }
    this.#mode = onStoreError
    this.#deadlineMs = parseDuration(deadline, 'deadline', { most: 60_000, error: PolicyError })
  }

  /** The store's answer, or the one that stands in for it. */
  async answer(asked: Promise<Answer>): Promise<Answer> {
    try {
      return await withDeadline(asked, this.#deadlineMs)
    } catch (failure) {
      return answerInstead(failure, this.#mode)
    }
  }

  /** Something that nothing can stand in for. */
  async done<T>(asked: T | Promise<T>): Promise<T> {
    return asked instanceof Promise ? withDeadline(asked, this.#deadlineMs) : asked
  }
}
