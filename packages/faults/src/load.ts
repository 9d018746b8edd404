import type { Decision, Limiter } from '@sluice/core'
import { quantile } from '@sluice/harness/figures'
import { pause } from '@sluice/harness/redis'

/** One call and how it was answered. Instants are those of `performance.now()`. */
interface Call {
  readonly madeAt: number
  readonly tookMs: number
  readonly degraded: string | undefined
}

/** Calls at an even pace, whatever becomes of those before: what a service with many users does to its limiter. */
export class Load {
  readonly calls: Call[] = []
  /** The errors of calls that rejected, and of promises that were not handled. */
  readonly errors: string[] = []
  readonly #limiter: Limiter
  readonly #unsettled = new Set<Promise<void>>()
  readonly #timer: ReturnType<typeof setInterval>
  readonly #began = performance.now()
  #made = 0

  constructor(limiter: Limiter, perSecond: number) {
    this.#limiter = limiter
    process.on('unhandledRejection', this.#uncaught)
    this.#timer = setInterval(() => {
      const due = ((performance.now() - this.#began) / 1000) * perSecond
      while (this.#made < due) this.#call()
    }, 2)
  }

  /** Ends the load. Calls that are not settled a second later count as errors. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.race([Promise.allSettled(this.#unsettled), pause(1000)])
    process.off('unhandledRejection', this.#uncaught)
    if (this.#unsettled.size > 0) this.errors.push(`${this.#unsettled.size} calls never settled`)
  }

  /** The 99th percentile of what calls took that were made between two instants, in milliseconds. */
  p99(from: number, to: number): number {
    const took = this.calls.filter(({ madeAt }) => madeAt >= from && madeAt < to).map(({ tookMs }) => tookMs)
    return quantile(took, 0.99)
  }

  /** How long after `instant` the last call was made that the store did not decide, in milliseconds. */
  degradedAfter(instant: number): number {
    const last = this.calls.findLast(({ degraded }) => degraded !== undefined)
    return Math.max(0, (last?.madeAt ?? 0) - instant)
  }

  /** The reasons of degraded decisions made between two instants, and undefined where the store decided. */
  reasons(from: number, to: number): Set<string | undefined> {
    return new Set(
      this.calls.filter(({ madeAt }) => madeAt >= from && madeAt < to).map(({ degraded }) => degraded),
    )
  }

  /** Makes one call of the next key without waiting for it, and notes how long it took and what decided, or its error. */
  #call(): void {
    const madeAt = performance.now()
    const key = `user:${this.#made++ % KEYS}`
    const note = ({ degraded }: Decision) =>
      void this.calls.push({ madeAt, tookMs: performance.now() - madeAt, degraded })
    const call = this.#limiter
      .consume(key)
      .then(note)
      .catch((error: unknown) => void this.errors.push(String(error)))
      .finally(() => this.#unsettled.delete(call))
    this.#unsettled.add(call)
  }

  readonly #uncaught = (error: unknown): void => void this.errors.push(`unhandled: ${String(error)}`)
}

const KEYS = 100
