import type { Policy } from '@sluice/core'
import { onAbort } from './abort.js'
import type { ExceededReason } from './exceeded.js'
import type { Booking, KeyQueue, Turn, WaitingCall } from './key-queue.js'

export interface WaitOptions {
  readonly cost: number
  readonly priority: number
  /** On the clock of `performance.now()`. */
  readonly until: number
  readonly prefetch: number
  readonly latenessMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** What a wait needs of the queue that it belongs to. */
export interface WaitingRoom {
  readonly policies: readonly Policy[] | undefined
  /** The call may stand in the queue of its key from here on. */
  admit(wait: Wait): void
  /** Counts the call among those that are under way until its turn is released. */
  counted(turn: Turn): Turn
  /** The call waits no more: it goes out, or not. */
  left(wait: Wait, goesOut: boolean): void
}

/**
 * One wait of a call for its turn: in the queue of its key, before it is repeated, or in a queue that is paused. It ends
 * with its turn, with its deadline unless a place is booked for it, when its signal aborts, or when it is refused.
 */
export class Wait implements WaitingCall {
  readonly cost: number
  readonly priority: number
  readonly until: number
  readonly prefetch: number
  readonly latenessMs: number | undefined
  readonly keyQueue: KeyQueue
  readonly turn: Promise<Turn>
  booking: Booking | undefined
  before: WaitingCall | undefined
  after: WaitingCall | undefined
  isLinked = false
  /** Why it is refused at its deadline. */
  reason: ExceededReason = 'queue'
  readonly #room: WaitingRoom
  readonly #ignore: (() => void) | undefined
  readonly #deadline: ReturnType<typeof setTimeout>
  #delay: ReturnType<typeof setTimeout> | undefined
  #resolve!: (turn: Turn) => void
  #reject!: (error: unknown) => void

  constructor(room: WaitingRoom, keyQueue: KeyQueue, options: WaitOptions) {
    this.#room = room
    this.keyQueue = keyQueue
    this.cost = options.cost
    this.priority = options.priority
    this.until = options.until
    this.prefetch = options.prefetch
    this.latenessMs = options.latenessMs
    this.turn = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const { signal, until } = options
    this.#ignore = signal && onAbort(signal, () => this.refuse(signal.reason))
    this.#deadline = setTimeout(expire, Math.max(0, until - performance.now()), this)
    keyQueue.waiting++
  }

  get policies(): readonly Policy[] | undefined {
    return this.#room.policies
  }

  /** Stands in the queue after `delayMs`. */
  start(delayMs: number): void {
    if (delayMs > 0) this.#delay = setTimeout(() => this.#room.admit(this), delayMs)
    else this.#room.admit(this)
  }

  enter(turn: Turn): void {
    this.#leave(true)
    this.#resolve(this.#room.counted(turn))
  }

  refuse(error: unknown): void {
    this.#leave(false)
    this.#reject(error)
  }

  /** Its deadline has come. */
  expire(): void {
    // The store knows better than a timer when the turn of a booked place comes.
    if (!this.booking) this.refuse(this.keyQueue.exceeded(this.reason))
  }

  #leave(goesOut: boolean): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#delay)
    this.#ignore?.()
    this.keyQueue.waiting--
    this.keyQueue.remove(this)
    this.#room.left(this, goesOut)
  }
}

function expire(wait: Wait): void {
  wait.expire()
}
