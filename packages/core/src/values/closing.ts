import { StoreError } from './errors.js'

/** Whether a store is closed, and the signal that says so, which is made when it is asked for. */
export class Closing {
  #controller: AbortController | undefined
  /** Read with each call, so it is no accessor. */
  isClosed = false

  /** A signal that aborts when the store is closed. It is made when it is first asked for, and is aborted then if that was later. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.isClosed) this.#controller.abort()
    return this.#controller.signal
  }

  /** Closes for good, and aborts the signal if it was ever asked for. */
  close(): void {
    this.isClosed = true
    this.#controller?.abort()
  }
}

/** The error of every call to a store after its `close`. */
export function storeClosed(): StoreError {
  return closedError('store')
}

/** The error of every call to a store, limiter or semaphore after its `close`; `what` names it. */
export function closedError(what: 'store' | 'limiter' | 'semaphore'): StoreError {
  return new StoreError('CLOSED', `the ${what} is closed`)
}

/**
 * Takes the place of a store's clock after `close`, so that every call which reads the time fails.
 * @throws {StoreError} CLOSED.
 */
export function closedClock(): number {
  throw storeClosed()
}
