import { StoreError } from '../errors.js'

/**
 * Gives up on answers that take longer than `ms` milliseconds. One timer serves all calls, as their deadlines end in
 * the order in which they began.
 */
export class Deadline {
  readonly ms: number
  /** A list, as a Set of what comes and goes so fast costs more than the waiting. */
  #first: Waiting | undefined
  #last: Waiting | undefined
  /** Left to run out while nobody waits, as making one for each call takes longer, but then it holds no process up. */
  #timer: Timer | undefined
  #closed = false

  constructor(ms: number) {
    this.ms = ms
  }

  /**
   * What `answer` gives, if it does in time. A call that is late may still be carried out by the store: deadlines count
   * too much, never too little.
   * @throws {StoreError} STORE_TIMEOUT.
   */
  within<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting = { since: performance.now(), giveUp: reject, before: undefined, after: undefined }
      this.begin(waiting)
      answer.then(
        (value) => {
          this.end(waiting)
          resolve(value)
        },
        (error: Error) => {
          this.end(waiting)
          reject(error)
        },
      )
    })
  }

  /** Tells `waiting` when its time is over, unless it has ended before. */
  begin(waiting: Waiting): void {
    waiting.before = this.#last
    if (this.#last) this.#last.after = waiting
    else this.#first = waiting
    this.#last = waiting
    if (this.#timer === undefined) this.#lookIn(this.ms)
    else if (!waiting.before && !this.#closed) this.#ref()
  }

  end(waiting: Waiting): void {
    this.#takeOut(waiting)
    if (!this.#first) this.#unref()
  }

  /** From here on nobody who waits keeps the process alive. */
  close(): void {
    this.#closed = true
    this.#unref()
  }

  #takeOut(waiting: Waiting): void {
    if (!waiting.before && this.#first !== waiting) return // it has left before
    if (waiting.before) waiting.before.after = waiting.after
    else this.#first = waiting.after
    if (waiting.after) waiting.after.before = waiting.before
    else this.#last = waiting.before
    // What has left must not keep its neighbours in memory.
    waiting.before = waiting.after = undefined
  }

  #lookIn(ms: number, late = false): void {
    this.#timer = setTimeout(() => this.#look(late), ms)
    if (this.#closed) this.#unref()
  }

  #look(late: boolean): void {
    const now = performance.now()
    for (let waiting = this.#first; waiting; waiting = this.#first) {
      const left = waiting.since + this.ms - now
      if (left > 0) return this.#lookIn(Math.ceil(left))
      // A process that stood still itself runs its timers first: what has arrived meanwhile must be read before.
      if (left < -LATE_MS && !late) return this.#lookIn(0, true)
      this.#takeOut(waiting)
      waiting.giveUp(new StoreError('STORE_TIMEOUT', `the store did not answer within ${this.ms} ms`))
    }
    this.#timer = undefined
  }

  #ref(): void {
    this.#timer?.ref?.()
  }

  #unref(): void {
    this.#timer?.unref?.()
  }
}

export interface Waiting {
  /** As `performance.now()` says it. */
  readonly since: number
  /** Its neighbours, kept by the deadline. */
  before: Waiting | undefined
  after: Waiting | undefined
  giveUp(error: StoreError): void
}

/** A number outside of Node. */
type Timer = Partial<Pick<NodeJS.Timeout, 'ref' | 'unref'>>

/** How late a timer comes when the process itself was busy, in milliseconds. */
const LATE_MS = 5
