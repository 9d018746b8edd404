import type { Decision } from './decision.js'
import type { StoreFailure } from '../values/errors.js'

/** What a limiter tells about itself, by event name. */
export interface LimiterEvents {
  /** Every decision of `consume`, `decide`, `peek` and `acquire`. */
  decision: { readonly key: string; readonly decision: Decision }
  /** The store does not decide; told once until it has recovered. `reason` is the first decision's `degraded`. */
  degraded: { readonly reason: StoreFailure }
  /** The store decides again, after as many degraded decisions. */
  recovered: { readonly reason: StoreFailure; readonly decisions: number }
  /** Something is likely set up wrongly; told once per code. */
  warning: { readonly code: string; readonly message: string }
  /** The store was full and forgot a key whose allowance was not full. */
  evicted: { readonly key: string }
  /** State that could not be read was dropped. */
  healed: { readonly key: string }
}

export type Listener<E extends keyof LimiterEvents> = (event: LimiterEvents[E]) => void

/**
 * Listeners by event name. Not an EventEmitter of Node, so that limiters also run where there is none. A listener
 * that throws does not change what the limiter does: the error goes to `failed`.
 */
export class Events {
  readonly #listeners = new Map<keyof LimiterEvents, Set<Listener<never>>>()
  readonly #failed: (event: keyof LimiterEvents, error: unknown) => void

  constructor(failed: (event: keyof LimiterEvents, error: unknown) => void) {
    this.#failed = failed
  }

  /** Returns what takes the listener away again. */
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
