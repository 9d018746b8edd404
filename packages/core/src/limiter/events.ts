import type { Notice, Outage } from '../stores/store.js'
import { Listeners } from '../values/listeners.js'
import { warnProcess } from '../values/process-warning.js'
import type { DecisionEvent } from './decision-event.js'

/** The events of a limiter, by name. */
export interface LimiterEvents {
  /** Every decision of `consume`, `decide` and `acquire`. A `peek` is no traffic and is not reported. */
  decision: DecisionEvent
  /** The store stopped deciding. Emitted once until it has recovered. `reason` is the first decision's `degraded`, `cause` the code below it. */
  degraded: Outage
  /** The store decides again, after `decisions` degraded decisions. */
  recovered: Outage & { readonly decisions: number }
  /** A likely mistake in the set-up. Emitted once per code. */
  warning: { readonly code: string; readonly message: string }
  /** The store was full and removed a key that had consumed something. */
  evicted: { readonly key: string }
  /** Unreadable state of a key was discarded. */
  healed: { readonly key: string }
}

export type Listener<E extends keyof LimiterEvents> = (event: LimiterEvents[E]) => void

/**
 * The listeners and warnings of one limiter. An error that a listener throws becomes a warning and does not affect the
 * limiter.
 */
export class Events {
  readonly #limiter: string
  readonly listeners = new Listeners<LimiterEvents>((name, error) =>
    this.warn('LISTENER_FAILED', `a listener of '${name}' threw: ${String(error)}`),
  )
  readonly #warned = new Set<string>()
  #isWarning = false

  /** `limiter` is its name, for process warnings. */
  constructor(limiter: string) {
    this.#limiter = limiter
  }

  /** Emits what a store reports. Stores report in the middle of an operation, so listeners are called afterwards. */
  receive(notice: Notice): void {
    if (!this.listeners.has(notice.event) && notice.event !== 'warning') return
    queueMicrotask(() => {
      if (notice.event === 'warning') return this.warn(notice.code, notice.message, notice.id)
      const { event, ...payload } = notice
      this.listeners.emit(event, payload)
    })
  }

  /**
   * Reports a likely mistake in the set-up, once per code or `id`: as a 'warning' event if that has listeners, else as a
   * process warning. Listeners that are passive get it in both cases.
   */
  warn(code: string, message: string, id = code): void {
    if (this.#warned.has(id)) return
    this.#warned.add(id)
    // The error of a listener of warnings becomes a process warning.
    const isHeard = this.listeners.hasActive('warning') && !this.#isWarning
    if (!this.#isWarning) this.#emitWarning(code, message)
    if (isHeard) return
    warnProcess(code, `limiter '${this.#limiter}': ${message}`)
  }

  #emitWarning(code: string, message: string): void {
    this.#isWarning = true
    try {
      this.listeners.emit('warning', { code, message })
    } finally {
      this.#isWarning = false
    }
  }
}
