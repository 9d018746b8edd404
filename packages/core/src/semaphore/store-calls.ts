import { Deadline } from '../resilience/deadline.js'
import type { Line } from '../resilience/line.js'
import { notAsked } from '../resilience/outage.js'
import type { MaybePromise } from '../stores/store.js'

/**
 * How one semaphore calls a store elsewhere: on the line that it shares with all that use the store, and waiting for
 * the deadline at most. While the store is known not to answer, or has too much to answer, nothing is sent to it.
 */
export class StoreCalls {
  readonly #line: Line
  readonly #deadline: Deadline

  constructor(line: Line, deadlineMs: number) {
    this.#line = line
    this.#deadline = new Deadline(deadlineMs)
  }

  /**
   * Why nothing is sent now; undefined where a call may be. Now and then `probe` is, to see whether the store is back:
   * it may be carried out late, and nobody hears its answer.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  refusal(probe: () => MaybePromise<unknown>): Error | undefined {
    const refusal = this.#line.refusal()
    if (!refusal) return undefined
    this.#line.probe(probe, this.#deadline)
    return notAsked(refusal)
  }

  /** @throws {StoreError} STORE_TIMEOUT after the deadline, or what the store rejects with. */
  send<T>(call: () => MaybePromise<T>): Promise<T> {
    return this.#line.send(call, this.#deadline)
  }

  /** From here on no call keeps the process alive. */
  close(): void {
    this.#deadline.close()
  }
}
