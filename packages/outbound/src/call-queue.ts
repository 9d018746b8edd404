import type { Limiter, Policy, Semaphore } from '@sluice/core'
import { Attempt, type Terms } from './attempt.js'
import type { QueueEvent } from './events.js'
import type { KeyQueue, Turn } from './key-queue.js'
import { type KeyQueues, keyQueuesOf } from './key-queues.js'
import { type Outcome, outcomeOf, type Task } from './task.js'
import { Wait, type WaitingRoom } from './wait.js'

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
 * Calls that wait for a limiter and a semaphore: what `createQueue`, `limitFetch` and the other clients stand on. Those
 * that share a limiter and a semaphore share the queues of their keys.
 */
export class CallQueue implements WaitingRoom {
  readonly #settings: CallQueueSettings
  readonly #keyQueues: KeyQueues
  readonly #waits = new Set<Wait>()
  /** Those of them that were stopped by `pause`, in their order. */
  readonly #parked = new Set<Wait>()
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

  get maxHoldMs(): number {
    return this.#settings.maxHoldMs
  }

  /** Calls that wait. */
  get size(): number {
    return this.#waits.size
  }

  /** Calls that are under way. */
  get pending(): number {
    return this.#pending
  }

  get isPaused(): boolean {
    return this.#paused
  }

  /** Closed, and not to be drained: calls that failed are not made again. */
  get isEnding(): boolean {
    return this.#closed && !this.#drains
  }

  keyQueue(key: string): KeyQueue {
    return this.#keyQueues.of(key)
  }

  emit(event: QueueEvent): void {
    this.#settings.emit(event)
  }

  attempt(terms: Terms): Attempt {
    return new Attempt(this, terms)
  }

  /** Makes a call when it is its turn, and again where its outcome is judged so. */
  async run<T>(terms: Terms, task: Task<T>): Promise<T> {
    const { key, priority } = terms
    const attempt = this.attempt(terms)
    let turn = await attempt.turn()
    for (;;) {
      const start = performance.now()
      this.emit({ type: 'started', key, priority, attempt: attempt.times })
      const outcome = await outcomeOf(task, turn)
      let again: boolean
      try {
        again = attempt.observe(task.judge(outcome, attempt.times))
      } catch (error) {
        turn.release()
        if ('value' in outcome) task.discard(outcome.value)
        throw error
      }
      const ended = { key, priority, attempt: attempt.times, ms: performance.now() - start }
      if (!again) return this.#end(outcome, task, turn, ended)
      this.emit({ type: 'retried', ...ended })
      // Before the place is given back, or the queue would be idle for a moment.
      const next = attempt.turn()
      turn.release()
      if ('value' in outcome) task.discard(outcome.value)
      turn = await next
    }
  }

  #end<T>(outcome: Outcome<T>, task: Task<T>, turn: Turn, ended: Ended): T {
    if ('value' in outcome) {
      this.emit({ type: 'done', ...ended })
      return task.deliver(outcome.value, turn)
    }
    this.emit({ type: 'failed', ...ended, error: outcome.error })
    turn.release()
    throw outcome.error
  }

  /**
   * A wait that has not begun, until an instant on the clock of `performance.now()`.
   * @throws {RateLimitExceededError} when the queue is full or closed.
   */
  wait(keyQueue: KeyQueue, { key, cost, priority, signal }: Terms, until: number, times: number): Wait {
    const { prefetch, latenessMs, maxQueue } = this.#settings
    if (this.#closed && (times === 1 || this.isEnding)) throw keyQueue.exceeded('closed')
    if (keyQueue.waiting >= maxQueue) throw keyQueue.exceeded('queue')
    const wait = new Wait(this, keyQueue, { cost, priority, until, prefetch, latenessMs, signal })
    this.#waits.add(wait)
    this.emit({ type: 'queued', key, priority, attempt: times })
    return wait
  }

  /** A turn that is counted among the calls that are under way until it is released. */
  counted({ decision, release }: Turn): Turn {
    let released = false
    return {
      decision,
      release: () => {
        if (released) return
        released = true
        release()
        this.#pending--
        this.#lookIdle()
      },
    }
  }

  admit(wait: Wait): void {
    if (this.#paused) return this.#park(wait)
    wait.reason = 'queue'
    wait.keyQueue.add(wait)
  }

  left(wait: Wait, goesOut: boolean): void {
    this.#waits.delete(wait)
    this.#parked.delete(wait)
    if (goesOut) this.#pending++
    if (this.#waits.size === 0) this.emit({ type: 'empty' })
    if (!goesOut) this.#lookIdle()
  }

  pause(): void {
    if (this.#paused) return
    this.#paused = true
    this.emit({ type: 'paused' })
    for (const wait of this.#waits) {
      if (!wait.isLinked) continue
      wait.keyQueue.remove(wait)
      this.#park(wait)
    }
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.emit({ type: 'continued' })
    const parked = [...this.#parked]
    this.#parked.clear()
    for (const wait of parked) this.admit(wait)
  }

  /** Refuses all calls that wait. Returns how many. */
  refuseAll(errorOf: (keyQueue: KeyQueue) => Error): number {
    const waits = [...this.#waits]
    for (const wait of waits) wait.refuse(errorOf(wait.keyQueue))
    return waits.length
  }

  setPolicies(policies: readonly Policy[]): void {
    this.policies = policies
    for (const keyQueue of new Set([...this.#waits].map((wait) => wait.keyQueue))) keyQueue.rebook()
  }

  onIdle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Refuses new calls, and those that wait unless they are to be made. Resolves when no call is under way. */
  async close(drain: boolean): Promise<void> {
    this.#closed = true
    this.#drains = drain
    if (drain) this.resume()
    else this.refuseAll((keyQueue) => keyQueue.exceeded('closed'))
    await this.onIdle()
  }

  get #isIdle(): boolean {
    return this.#waits.size === 0 && this.#pending === 0
  }

  #park(wait: Wait): void {
    wait.reason = 'paused'
    this.#parked.add(wait)
  }

  #lookIdle(): void {
    if (!this.#isIdle) return
    this.emit({ type: 'idle' })
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }
}

interface Ended {
  readonly key: string
  readonly priority: number
  readonly attempt: number
  readonly ms: number
}
