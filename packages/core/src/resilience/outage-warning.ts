import type { Store } from '../stores/store.js'
import { warnProcess } from '../values/process-warning.js'
import { outageOf, QUIET_MS } from './failure.js'

/**
 * Warns the process when a store stops answering, and when it answers again: without a listener the outage would go
 * unnoticed. At most one such pair a minute. Stores without an `endpoint` are passed over.
 */
export class OutageWarning {
  readonly #endpoint: string | undefined
  readonly #now: () => number
  /** Whether the latest call failed that said something about the store, and it has not recovered since. */
  isFailing = false
  #isHeard = false
  #heardAt = -Infinity
  #failedAt = 0

  /** `now` in milliseconds, of a clock that does not run back. */
  constructor({ endpoint }: Pick<Store, 'endpoint'>, now = (): number => performance.now()) {
    this.#endpoint = endpoint
    this.#now = now
  }

  failed(failure: Error): void {
    this.isFailing = true
    this.#failedAt = this.#now()
    if (this.#endpoint === undefined || this.#isHeard || this.#failedAt - this.#heardAt < MINUTE_MS) return
    this.#isHeard = true
    this.#heardAt = this.#failedAt
    const { reason, message } = outageOf(failure, this.#endpoint)
    warnProcess('STORE_DEGRADED', `the store at ${this.#endpoint} is not usable (${reason}): ${message}`)
  }

  answered(): void {
    if (this.#now() - this.#failedAt < QUIET_MS) return
    this.isFailing = false
    if (!this.#isHeard) return
    this.#isHeard = false
    warnProcess('STORE_RECOVERED', `the store at ${this.#endpoint} decides again`)
  }
}

const MINUTE_MS = 60_000
