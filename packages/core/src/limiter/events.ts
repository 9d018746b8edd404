import type { Decision } from './decision.js'
import type { StoreFailure } from '../values/errors.js'

/** The events of a limiter, by name. */
export interface LimiterEvents {
  /** Every decision of `consume`, `decide`, `peek` and `acquire`. */
  decision: { readonly key: string; readonly decision: Decision }
  /** The store stopped deciding. Emitted once until it has recovered. `reason` is the first decision's `degraded`. */
  degraded: { readonly reason: StoreFailure }
  /** The store decides again, after `decisions` degraded decisions. */
  recovered: { readonly reason: StoreFailure; readonly decisions: number }
  /** A likely mistake in the set-up. Emitted once per code. */
  warning: { readonly code: string; readonly message: string }
  /** The store was full and removed a key that had consumed something. */
  evicted: { readonly key: string }
  /** Unreadable state of a key was discarded. */
  healed: { readonly key: string }
}

export type Listener<E extends keyof LimiterEvents> = (event: LimiterEvents[E]) => void

/**
 * Listeners by event name. Not Node's EventEmitter, because limiters also run elsewhere. An error that a listener throws is
 * passed to `failed` and does not affect the limiter.
 */
export class Events {
  readonly #listeners = new Map<keyof LimiterEvents, Set<Listener<never>>>()
  readonly #failed: (event: keyof LimiterEvents, error: unknown) => void

  constructor(failed: (event: keyof LimiterEvents, error: unknown) => void) {
    this.#failed = failed
  }

  /** Returns a function that removes the listener. */
  on<E extends keyof LimiterEvents>(name: E, listener: Listener<E>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners.add(listener))
    return () => void listeners.delete(listener)
  }

  has(name: keyof LimiterEvents): boolean {
    if (this.#listeners.size === 0) return false
    return (this.#listeners.get(name)?.size ?? 0) > 0
  }

  emit<E extends keyof LimiterEvents>(name: E, event: LimiterEvents[E]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        ;(listener as Listener<E>)(event)
      } catch (error) {
        this.#failed(name, error)
      }
    }
  }
}
