import { StoreError } from '../errors.js'

/**
 * Gives up on answers that take longer than `ms` milliseconds. One timer serves all calls, as their deadlines end in
 * the order in which they began.
 */
export class Deadline {
  readonly ms: number
  readonly #waiting = new Set<Waiting>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(ms: number) {
    this.ms = ms
  }

  /**
   * What `answer` gives, if it does in time. A call that is late may still be carried out by the store: deadlines count
   * too much, never too little. One that has not been sent need not be any more: `caller` is gone.
   * @throws {StoreError} STORE_TIMEOUT.
   */
  within<T>(answer: Promise<T>, caller = { gone: false }): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting = { due: performance.now() + this.ms, reject, caller }
      this.#waiting.add(waiting)
      if (this.#timer === undefined) this.#lookIn(this.ms)
      answer.then(
        (value) => {
          this.#leave(waiting)
          resolve(value)
        },
        (error: Error) => {
          this.#leave(waiting)
          reject(error)
        },
      )
    })
  }

  /** From here on nobody who waits keeps the process alive. */
  close(): void {
    this.#closed = true
    this.#unref()
  }

  #leave(waiting: Waiting): void {
    this.#waiting.delete(waiting)
    if (this.#waiting.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #lookIn(ms: number, late = false): void {
    this.#timer = setTimeout(() => this.#look(late), ms)
    if (this.#closed) this.#unref()
  }

  #look(late: boolean): void {
    const now = performance.now()
    for (const waiting of this.#waiting) {
      const left = waiting.due - now
      if (left > 0) return this.#lookIn(Math.ceil(left))
      // A process that stood still itself runs its timers first: what has arrived meanwhile must be read before.
      if (left < -LATE_MS && !late) return this.#lookIn(0, true)
      this.#waiting.delete(waiting)
      waiting.caller.gone = true
      waiting.reject(new StoreError('STORE_TIMEOUT', `the store did not answer within ${this.ms} ms`))
    }
    this.#timer = undefined
  }

  #unref(): void {
    const timer = this.#timer as { unref?(): void } | undefined // a number outside of Node
    timer?.unref?.()
  }
}

interface Waiting {
  readonly due: number
  readonly caller: { gone: boolean }
  reject(error: Error): void
}

/** How late a timer comes when the process itself was busy, in milliseconds. */
const LATE_MS = 5
