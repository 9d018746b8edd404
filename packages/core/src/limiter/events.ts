import type { Notice } from '../stores/store.js'
import type { StoreFailure } from '../values/errors.js'
import type { Decision } from './decision.js'

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
 * The listeners and warnings of one limiter. Not Node's EventEmitter, because limiters also run elsewhere. An error that a
 * listener throws becomes a warning and does not affect the limiter.
 */
export class Events {
  readonly #limiter: string
  readonly #listeners = new Map<keyof LimiterEvents, Set<Listener<never>>>()
  readonly #warned = new Set<string>()
  #isWarning = false

  /** `limiter` is its name, for process warnings. */
  constructor(limiter: string) {
    this.#limiter = limiter
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
        this.warn('LISTENER_FAILED', `a listener of '${name}' threw: ${String(error)}`)
      }
    }
  }

  /** Emits what a store reports. Stores report in the middle of an operation, so listeners are called afterwards. */
  receive(notice: Notice): void {
    if (!this.has(notice.event) && notice.event !== 'warning') return
    queueMicrotask(() => {
      if (notice.event === 'warning') return this.warn(notice.code, notice.message, notice.id)
      const { event, ...payload } = notice
      this.emit(event, payload)
    })
  }

  /**
   * Reports a likely mistake in the set-up, once per code or `id`: as a 'warning' event if that has listeners, else as a
   * process warning.
   */
  warn(code: string, message: string, id = code): void {
    if (this.#warned.has(id)) return
    this.#warned.add(id)
    // The error of a listener of warnings becomes a process warning.
    if (this.has('warning') && !this.#isWarning) return this.#emitWarning(code, message)
    const text = `limiter '${this.#limiter}': ${message}`
    if (typeof process === 'object' && typeof process.emitWarning === 'function') {
      process.emitWarning(text, { type: 'SluiceWarning', code })
    } else {
      console.warn(`SluiceWarning [${code}] ${text}`)
    }
  }

  #emitWarning(code: string, message: string): void {
    this.#isWarning = true
    try {
      this.emit('warning', { code, message })
    } finally {
      this.#isWarning = false
    }
  }
}
