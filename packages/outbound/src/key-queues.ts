import type { Limiter, Semaphore } from '@sluice/core'
import { KeyQueue } from './key-queue.js'

/** The queues of one limiter and one semaphore, by key. Clients that share both share the queues. */
export class KeyQueues {
  readonly #limiter: Limiter
  readonly #semaphore: Semaphore | undefined
  readonly #queues = new Map<string, KeyQueue>()
  #sweepAt = LEAST_SWEPT

  constructor(limiter: Limiter, semaphore: Semaphore | undefined) {
    this.#limiter = limiter
    this.#semaphore = semaphore
  }

  of(key: string): KeyQueue {
    let queue = this.#queues.get(key)
    if (!queue) {
      if (this.#queues.size >= this.#sweepAt) this.#dropIdle()
      this.#queues.set(key, (queue = new KeyQueue(this.#limiter, this.#semaphore, key)))
    }
    return queue
  }

  #dropIdle(): void {
    for (const [key, queue] of this.#queues) if (queue.idle) this.#queues.delete(key)
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#queues.size)
  }
}

export function keyQueuesOf(limiter: Limiter, semaphore: Semaphore | undefined): KeyQueues {
  const beside = queuesByLimiter.get(limiter) ?? new WeakMap<object, KeyQueues>()
  queuesByLimiter.set(limiter, beside)
  const known = beside.get(semaphore ?? limiter) ?? new KeyQueues(limiter, semaphore)
  beside.set(semaphore ?? limiter, known)
  return known
}

/** Idle queues are dropped only above this number, or above twice as many as were in use at the last sweep. */
const LEAST_SWEPT = 100
const queuesByLimiter = new WeakMap<Limiter, WeakMap<object, KeyQueues>>()
