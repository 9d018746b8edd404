import type { Limiter, Semaphore } from '@sluice/core'
import { Line } from './line.js'

/** The lines of one limiter, and of one semaphore beside it, by key: clients that share these share their lines. */
export class Traffic {
  readonly #limiter: Limiter
  readonly #semaphore: Semaphore | undefined
  readonly #lines = new Map<string, Line>()
  #sweepAt = 1000

  constructor(limiter: Limiter, semaphore: Semaphore | undefined) {
    this.#limiter = limiter
    this.#semaphore = semaphore
  }

  line(key: string): Line {
    let line = this.#lines.get(key)
    if (!line) {
      if (this.#lines.size >= this.#sweepAt) this.#forgetIdle()
      this.#lines.set(key, (line = new Line(this.#limiter, this.#semaphore, key)))
    }
    return line
  }

  #forgetIdle(): void {
    for (const [key, line] of this.#lines) if (line.idle) this.#lines.delete(key)
    this.#sweepAt = Math.max(1000, 2 * this.#lines.size)
  }
}

export function trafficOf(limiter: Limiter, semaphore: Semaphore | undefined): Traffic {
  const beside = trafficByLimiter.get(limiter) ?? new WeakMap<object, Traffic>()
  trafficByLimiter.set(limiter, beside)
  const known = beside.get(semaphore ?? limiter) ?? new Traffic(limiter, semaphore)
  beside.set(semaphore ?? limiter, known)
  return known
}

const trafficByLimiter = new WeakMap<Limiter, WeakMap<object, Traffic>>()
