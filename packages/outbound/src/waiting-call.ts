import type { Policy } from '@sluice/core'
import { onAbort } from '@sluice/core/internal'
import type { ExceededReason } from './exceeded.js'
import type { Admission } from './admission.js'
import type { KeyQueue } from './key-queue.js'
import { comesInTime, type QueueEntry, type Reservation } from './reservation.js'

export interface WaitingCallOptions {
  readonly cost: number
  readonly priority: number
  /** On the clock of `performance.now()`. */
  readonly until: number
  readonly prefetch: number
  readonly latenessMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** What a waiting call needs of the queue that it belongs to. */
export interface OwningQueue {
  readonly policies: readonly Policy[] | undefined
  /** Adds the call to the queue of its key, unless the owning queue is paused. */
  enqueue(call: WaitingCall): void
  /** Counts the call as pending until its admission is released. */
  counted(admission: Admission): Admission
  /** The call no longer waits: it was admitted or refused. */
  left(call: WaitingCall, isAdmitted: boolean): void
}

/**
 * One wait of a call for its turn: in the queue of its key, before another attempt, or in a queue that is paused. The wait
 * ends with the call's turn, when it is refused, when its signal aborts, or at its deadline unless a turn before it is reserved.
 */
export class WaitingCall implements QueueEntry {
  readonly cost: number
  readonly priority: number
  readonly until: number
  readonly prefetch: number
  readonly latenessMs: number | undefined
  readonly keyQueue: KeyQueue
  readonly admission: Promise<Admission>
  reservation: Reservation | undefined
  before: QueueEntry | undefined
  after: QueueEntry | undefined
  isLinked = false
  /** The reason for a refusal at the deadline. */
  reason: ExceededReason = 'queue'
  readonly #owner: OwningQueue
  readonly #stopListening: (() => void) | undefined
  readonly #deadline: ReturnType<typeof setTimeout>
  #isOverdue = false
  #delay: ReturnType<typeof setTimeout> | undefined
  #resolve!: (admission: Admission) => void
  #reject!: (error: unknown) => void

  constructor(owner: OwningQueue, keyQueue: KeyQueue, options: WaitingCallOptions) {
    this.#owner = owner
    this.keyQueue = keyQueue
    this.cost = options.cost
    this.priority = options.priority
    this.until = options.until
    this.prefetch = options.prefetch
    this.latenessMs = options.latenessMs
    this.admission = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const { signal, until } = options
    this.#stopListening = signal && onAbort(signal, () => this.refuse(signal.reason))
    this.#deadline = setTimeout(expire, Math.max(0, until - performance.now()), this)
    keyQueue.waiting++
  }

  get policies(): readonly Policy[] | undefined {
    return this.#owner.policies
  }

  /** Enters the queue after `delayMs`. */
  start(delayMs: number): void {
    if (delayMs > 0) this.#delay = setTimeout(() => this.#owner.enqueue(this), delayMs)
    else this.#owner.enqueue(this)
  }

  admit(admission: Admission): void {
    this.#leave(true)
    this.#resolve(this.#owner.counted(admission))
  }

  refuse(error: unknown): void {
    this.#leave(false)
    this.#reject(error)
  }

  /** Refuses the call at its deadline. */
  expire(): void {
    this.#isOverdue = true
    this.recheck()
  }

  recheck(): void {
    // The store knows better than a timer when a reserved turn comes.
    if (this.#isOverdue && !comesInTime(this)) this.refuse(this.keyQueue.exceeded(this.reason))
  }

  #leave(isAdmitted: boolean): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#delay)
    this.#stopListening?.()
    this.keyQueue.waiting--
    this.keyQueue.remove(this)
    this.#owner.left(this, isAdmitted)
  }
}

function expire(call: WaitingCall): void {
  call.expire()
}
