import { StoreError } from '../errors.js'
import type { Caller, MaybePromise, Store } from '../stores/store.js'
import { Circuit } from './circuit.js'
import type { Deadline } from './deadline.js'
import { isOutage, isSilence } from './outage.js'
import { MOST_UNDER_WAY, UnderWay } from './under-way.js'

/**
 * The way to one store, for all limiters of this process that use it: a bounded number of calls is under way, and none
 * is sent while the circuit is open.
 */
export class Line {
  readonly #store: Store
  readonly #circuit = new Circuit<Error>()
  readonly #underWay = new UnderWay()

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Why no call may be sent now; undefined when one may.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  refusal(): Error | undefined {
    const refusal = this.#circuit.open ?? (this.#underWay.isFull ? overloaded() : undefined)
    if (refusal) this.#store.now()
    return refusal
  }

  /** Sends a call and waits for its answer until the deadline. From then on its caller is gone. */
  async send<T>(call: (caller: Caller) => MaybePromise<T>, deadline: Deadline): Promise<T> {
    const caller = { gone: false }
    try {
      const answer = await deadline.within(
        this.#underWay.track(() => call(caller)),
        caller,
      )
      this.#circuit.succeeded()
      return answer
    } catch (error) {
      if (isOutage(error) && isSilence(error)) this.#circuit.failed(error, deadline.ms)
      else if (isOutage(error)) this.#circuit.succeeded()
      throw error
    }
  }

  /** Sends `read` if it is time to see whether the store is back. Nobody waits for it. */
  probe(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (!this.#circuit.open || !this.#circuit.isProbeDue() || this.#underWay.isFull) return
    this.send(read, deadline).catch(() => {})
  }
}

function overloaded(): StoreError {
  return new StoreError('STORE_OVERLOADED', `${MOST_UNDER_WAY} calls are under way to it`)
}
