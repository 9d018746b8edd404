import type { Notice, Outage, Report } from '../stores/store.js'
import type { StoreError } from '../values/errors.js'
import { warnProcess } from '../values/process-warning.js'
import { failureOf } from './failure.js'

/** Reports once when a store stops deciding, and once when it decides again. */
export class Health {
  readonly #report: Report
  readonly #endpoint: string | undefined
  readonly #pauseMs: number
  readonly #now: () => number
  /** Why the first decision was degraded, until the store has recovered. */
  outage: Outage | undefined = undefined
  #decisions = 0
  #lastAt = 0
  #reportedAt = -Infinity

  /** Reports one outage in `pauseMs`. `now` in milliseconds, of a clock that does not run back. */
  constructor(report: Report, endpoint?: string, pauseMs = 0, now = (): number => performance.now()) {
    this.#report = report
    this.#endpoint = endpoint
    this.#pauseMs = pauseMs
    this.#now = now
  }

  degraded(failure: Error): void {
    this.#lastAt = this.#now()
    this.#decisions++
    if (this.outage || this.#lastAt - this.#reportedAt < this.#pauseMs) return
    this.#reportedAt = this.#lastAt
    this.outage = outageOf(failure, this.#endpoint)
    this.#report({ event: 'degraded', ...this.outage })
  }

  decided(): void {
    if (!this.outage || this.#now() - this.#lastAt < QUIET_MS) return
    this.#report({ event: 'recovered', ...this.outage, decisions: this.#decisions })
    this.outage = undefined
    this.#decisions = 0
  }
}

/**
 * Milliseconds without a degraded decision before a store counts as recovered. If only some calls fail, such as those of
 * one node or those that write, listeners get one event and not thousands.
 */
const QUIET_MS = 100

/**
 * Warns the process when a store stops answering, and when it answers again: without a listener the outage would go
 * unnoticed. At most one such pair a minute. Stores without an `endpoint` are passed over.
 */
export function processHealth(endpoint: string | undefined, now?: () => number): Health {
  return new Health(warnOfOutage, endpoint, MINUTE_MS, now)
}

const MINUTE_MS = 60_000

function warnOfOutage(notice: Notice): void {
  if (!('endpoint' in notice) || notice.endpoint === undefined) return
  const { event, endpoint, reason, message } = notice
  if (event === 'recovered') warnProcess('STORE_RECOVERED', `the store at ${endpoint} decides again`)
  else warnProcess('STORE_DEGRADED', `the store at ${endpoint} is not usable (${reason}): ${message}`)
}

/** The outage, as listeners and warnings get it. */
function outageOf(failure: Error, endpoint: string | undefined): Outage {
  const { code, cause } = failure as Partial<StoreError>
  const below = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  const reply = /^[A-Z]{2,}(?= )/.exec(String(below.message))?.[0]
  const codeBelow = typeof below.code === 'string' ? below.code : reply
  return {
    reason: failureOf(failure),
    cause: codeBelow ?? code ?? failure.name,
    message: failure.message,
    endpoint,
  }
}
