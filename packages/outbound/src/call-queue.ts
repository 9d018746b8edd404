import type { Limiter, Policy, Semaphore } from '@sluice/core'
import type { QueueEvent } from './events.js'
import type { Admission } from './admission.js'
import type { KeyQueue } from './key-queue.js'
import { type KeyQueues, keyQueuesOf } from './key-queues.js'
import { type OwningQueue, WaitingCall } from './waiting-call.js'

/** What one call asks for, with all defaults applied. */
export interface CallTerms {
  readonly key: string
  readonly cost: number
  readonly priority: number
  readonly maxWaitMs: number
  readonly signal: AbortSignal | undefined
}

export interface CallQueueSettings {
  readonly limiter: Limiter
  readonly semaphore: Semaphore | undefined
  readonly prefetch: number
  readonly latenessMs: number | undefined
  readonly maxQueue: number
  readonly maxHoldMs: number
  readonly emit: (event: QueueEvent) => void
}

/**
 * The calls of one client, `createQueue`, `limitFetch` or another, that wait for a limiter and a semaphore. Clients that
 * share a limiter and a semaphore share the queues of their keys.
 */
export class CallQueue implements OwningQueue {
  readonly #settings: CallQueueSettings
  readonly #keyQueues: KeyQueues
  readonly #waiting = new Set<WaitingCall>()
  /** The calls among them that `pause` has stopped, in their order. */
  readonly #parked = new Set<WaitingCall>()
  #idle: (() => void)[] = []
  #pending = 0
  #paused = false
  #closed = false
  #drains = false
  policies: readonly Policy[] | undefined

  constructor(settings: CallQueueSettings) {
    this.#settings = settings
    this.#keyQueues = keyQueuesOf(settings.limiter, settings.semaphore)
  }

  /** The name of the limiter. */
  get limiter(): string {
    return this.#settings.limiter.name
  }

  get maxHoldMs(): number {
    return this.#settings.maxHoldMs
  }

  /** Calls that wait. */
  get size(): number {
    return this.#waiting.size
  }

  /** Calls that are under way. */
  get pending(): number {
    return this.#pending
  }

  get isPaused(): boolean {
    return this.#paused
  }

  /** Closed without draining: calls that failed are not attempted again. */
  get isEnding(): boolean {
    return this.#closed && !this.#drains
  }

  keyQueue(key: string): KeyQueue {
    return this.#keyQueues.of(key)
  }

  emit(event: QueueEvent): void {
    this.#settings.emit(event)
  }

  /**
   * A call that waits, once it is started, until an instant on the clock of `performance.now()`.
   * @throws {RateLimitExceededError} when the queue is full or closed.
   */
  wait(keyQueue: KeyQueue, terms: CallTerms, until: number, attempt: number): WaitingCall {
    const { key, cost, priority, signal } = terms
    const { prefetch, latenessMs, maxQueue } = this.#settings
    if (this.#closed && (attempt === 1 || this.isEnding)) throw keyQueue.exceeded('closed')
    if (keyQueue.waiting >= maxQueue) throw keyQueue.exceeded('queue')
    const call = new WaitingCall(this, keyQueue, { cost, priority, until, prefetch, latenessMs, signal })
    this.#waiting.add(call)
    this.emit({ type: 'queued', limiter: this.limiter, key, cost, priority, attempt })
    return call
  }

  enqueue(call: WaitingCall): void {
    if (this.#paused) return this.#park(call)
    call.reason = 'queue'
    call.keyQueue.add(call)
  }

  /** Counts the call as pending until its admission is released. */
  counted({ decision, release }: Admission): Admission {
    let released = false
    return {
      decision,
      release: () => {
        if (released) return
        released = true
        release()
        this.#pending--
        this.#checkIdle()
      },
    }
  }

  left(call: WaitingCall, isAdmitted: boolean): void {
    this.#waiting.delete(call)
    this.#parked.delete(call)
    if (isAdmitted) this.#pending++
    if (this.#waiting.size === 0) this.emit({ type: 'empty', limiter: this.limiter })
    if (!isAdmitted) this.#checkIdle()
  }

  pause(): void {
    if (this.#paused) return
    this.#paused = true
    this.emit({ type: 'paused', limiter: this.limiter })
    for (const call of this.#waiting) {
      if (!call.isLinked) continue
      call.keyQueue.remove(call)
      this.#park(call)
      call.recheck()
    }
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.emit({ type: 'continued', limiter: this.limiter })
    const parked = [...this.#parked]
    this.#parked.clear()
    for (const call of parked) this.enqueue(call)
  }

  /** Refuses all calls that wait. Returns how many. */
  refuseAll(errorOf: (keyQueue: KeyQueue) => Error): number {
    const calls = [...this.#waiting]
    for (const call of calls) call.refuse(errorOf(call.keyQueue))
    return calls.length
  }

  setPolicies(policies: readonly Policy[]): void {
    this.policies = policies
    for (const keyQueue of new Set([...this.#waiting].map((call) => call.keyQueue))) keyQueue.reserveAnew()
  }

  onIdle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Refuses new calls, and waiting ones unless `drain` is set. Resolves when no call is under way. */
  async close(drain: boolean): Promise<void> {
    this.#closed = true
    this.#drains = drain
    if (drain) this.resume()
    else this.refuseAll((keyQueue) => keyQueue.exceeded('closed'))
    await this.onIdle()
  }

  get #isIdle(): boolean {
    return this.#waiting.size === 0 && this.#pending === 0
  }

  #park(call: WaitingCall): void {
    call.reason = 'paused'
    this.#parked.add(call)
  }

  #checkIdle(): void {
    if (!this.#isIdle) return
    this.emit({ type: 'idle', limiter: this.limiter })
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }
}
