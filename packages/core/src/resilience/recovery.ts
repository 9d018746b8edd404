import type { MaybePromise } from '../stores/store.js'
import type { Deadline } from './deadline.js'
import type { Line } from './line.js'

/**
 * Those who wait until a store answers again. One timer serves all of them. While nothing else is asked of the store, it is
 * probed for them, as often as the circuit allows.
 */
export class Recovery {
  readonly #line: Line
  readonly #waiting = new Map<Recovering, number>()
  #timer: ReturnType<typeof setInterval> | undefined
  #heard = 0

  constructor(line: Line) {
    this.#line = line
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Calls `goOn` once the store has answered another call in time from now on, and not before `notBefore`. */
  await(waiting: Recovering): void {
    this.#waiting.set(waiting, this.#line.answeredInTimeSoFar)
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS)
  }

  leave(waiting: Recovering): void {
    this.#waiting.delete(waiting)
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    const { answeredInTimeSoFar: answered } = this.#line
    const now = performance.now()
    let answers: boolean
    try {
      answers = this.#line.answers()
    } catch (closed) {
      for (const waiting of this.#waiting.keys()) {
        this.leave(waiting)
        waiting.fail(closed)
      }
      return
    }
    if (answered === this.#heard) {
      const [first] = this.#waiting.keys()
      if (first) this.#line.look(first.read, first.deadline)
    }
    this.#heard = answered
    if (!answers) return
    for (const [waiting, seen] of this.#waiting) {
      if (answered === seen || now < waiting.notBefore) continue
      this.leave(waiting)
      waiting.goOn()
    }
  }
}

/** One who waits. Instants are those of `performance.now()`. */
export interface Recovering {
  readonly notBefore: number
  readonly deadline: Deadline
  /** A call that changes nothing. */
  readonly read: () => MaybePromise<unknown>
  goOn(): void
  /** The store is closed. */
  fail(error: unknown): void
}

/** Milliseconds between two looks. */
const LOOK_MS = 25
