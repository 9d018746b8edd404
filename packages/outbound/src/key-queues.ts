import type { Limiter, Semaphore } from '@sluice/core'
import { KeyQueue } from './key-queue.js'

/** The queues of one limiter, and of one semaphore beside it, by key: clients that share these share their queues. */
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
      if (this.#queues.size >= this.#sweepAt) this.#forgetIdle()
      this.#queues.set(key, (queue = new KeyQueue(this.#limiter, this.#semaphore, key)))
    }
    return queue
  }

  #forgetIdle(): void {
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

/** Queues of keys that no call waits for are kept up to this many, or as many as are in use. */
const LEAST_SWEPT = 100
const queuesByLimiter = new WeakMap<Limiter, WeakMap<object, KeyQueues>>()
