import type { Admission } from './admission.js'
import type { QueueOptions, RunContext } from './queue-options.js'
import { FINAL, type TaskOutcome, type Task, type Verdict } from './task.js'

/** A function that a queue calls, and calls again if `retry` says so. */
export class QueueTask<T> implements Task<T> {
  readonly #fn: (context: RunContext) => T | PromiseLike<T>
  readonly #signal: AbortSignal | undefined
  readonly #options: QueueOptions
  #attempt = 0

  constructor(
    fn: (context: RunContext) => T | PromiseLike<T>,
    signal: AbortSignal | undefined,
    options: QueueOptions,
  ) {
    this.#fn = fn
    this.#signal = signal
    this.#options = options
  }

  start({ decision }: Admission): T | PromiseLike<T> {
    const fn = this.#fn
    return fn({ signal: this.#signal, decision, attempt: ++this.#attempt })
  }

  judge(outcome: TaskOutcome<T>, attempt: number): Verdict {
    if ('value' in outcome) return SUCCEEDED
    const { pauseOf, retry } = this.#options
    const pauseMs = pauseOf?.({ error: outcome.error }) ?? 0
    const again = retry?.(outcome.error, attempt) ?? false
    return {
      succeeded: false,
      pauseMs: pauseMs > 0 ? pauseMs : 0,
      again: typeof again === 'number' && again >= 0 ? again : false,
    }
  }

  deliver(value: T, { release }: Admission): T {
    release()
    return value
  }

  discard(): void {}
}

const SUCCEEDED: Verdict = { ...FINAL, succeeded: true }
