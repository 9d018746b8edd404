import { StoreError } from '../errors.js'
import type { Caller, MaybePromise, Store } from '../stores/store.js'
import { Circuit } from './circuit.js'
import type { Deadline, Waiting } from './deadline.js'
import { isOutage, isSilence } from './outage.js'
import { type Generation, MOST_UNDER_WAY, UnderWay } from './under-way.js'

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

  /**
   * Sends a call and waits for its answer until the deadline; from then on its caller is gone. Gives what `answered` and
   * `failed` make of what came; without them that itself.
   */
  send<T>(
    call: (caller: Caller) => MaybePromise<T>,
    deadline: Deadline,
    answered?: (answer: T) => T,
    failed?: (error: unknown) => T,
  ): Promise<T> {
    // One promise and no async function: they would take more time than everything else that is done here.
    return new Promise((resolve, reject) => {
      const sent = new Sent(this.#circuit, this.#underWay, deadline, resolve, reject, answered, failed)
      try {
        const answer = call(sent)
        if (answer instanceof Promise) {
          answer.then(
            (value) => sent.answer(value),
            (error: unknown) => sent.fail(error),
          )
        } else sent.answer(answer)
      } catch (error) {
        sent.fail(error)
      }
    })
  }

  /** Sends `read` if it is time to see whether the store is back. Nobody waits for it. */
  probe(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (!this.#circuit.open || !this.#circuit.isProbeDue() || this.#underWay.isFull) return
    this.send(read, deadline).catch(() => {})
  }
}

/** A call on its way, and the caller who waits for its answer. */
class Sent<T> implements Caller, Waiting {
  gone = false
  readonly since = performance.now()
  before: Waiting | undefined = undefined
  after: Waiting | undefined = undefined
  readonly generation: Generation

  constructor(
    readonly circuit: Circuit<Error>,
    readonly underWay: UnderWay,
    readonly deadline: Deadline,
    readonly resolve: (answer: T) => void,
    readonly reject: (error: unknown) => void,
    readonly answered: ((answer: T) => T) | undefined,
    readonly failed: ((error: unknown) => T) | undefined,
  ) {
    this.generation = underWay.begin(this.since)
    deadline.begin(this)
  }

  answer(answer: T): void {
    this.underWay.end(this.generation)
    if (this.gone) return
    this.deadline.end(this)
    this.circuit.succeeded()
    try {
      this.resolve(this.answered ? this.answered(answer) : answer)
    } catch (error) {
      this.reject(error)
    }
  }

  fail(error: unknown): void {
    this.underWay.end(this.generation)
    if (this.gone) return
    this.deadline.end(this)
    this.#tell(error)
  }

  giveUp(error: Error): void {
    this.gone = true
    this.#tell(error)
  }

  #tell(error: unknown): void {
    if (isOutage(error) && isSilence(error)) this.circuit.failed(error, this.deadline.ms)
    else if (isOutage(error)) this.circuit.succeeded()
    try {
      if (this.failed) this.resolve(this.failed(error))
      else this.reject(error)
    } catch (instead) {
      this.reject(instead)
    }
  }
}

function overloaded(): StoreError {
  return new StoreError('STORE_OVERLOADED', `${MOST_UNDER_WAY} calls are under way to it`)
}
