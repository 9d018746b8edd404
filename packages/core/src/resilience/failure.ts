import { type Answer, type Keyspace, type Notice, type Outage, type Report, usedOf } from '../stores/store.js'
import { codeOf, StoreError, type StoreFailure } from '../values/errors.js'
import { warnProcess } from '../values/process-warning.js'
import { nowMs } from '../values/clock.js'

/**
 * Returns the answer to a call that no state could decide. `allowed` says whether it passes, as the failure mode 'allow' or 'deny'
 * has it; a denied caller may try again in a second. It is false too for a cost above this process's share of the limits, in the
 * keyspace `by` that decides in place of the store. `why` is the store's failure; `here` says how the key stands in this process.
 * Of the three numbers that `here.parts` has for each policy, the first, its earliest instant, becomes that of the answer.
 */
export function undecidedAnswer(why: StoreFailure, allowed: boolean, here: Answer, by?: Keyspace): Answer {
  const at = allowed ? here.now : here.now + RETRY_AFTER
  const parts = here.parts?.map((number, i) => (i % 3 === 0 ? at : number))
  return { ...here, at, reason: undefined, parts, degraded: { why, allowed, by } }
}

/**
 * Returns an answer of the keyspace `by`, which decided in this process in place of the store, marked with the store's failure
 * `why`. If it denies a cost for ever ('cost'), only this process's share of the limits is too small for it: a cost that never fits
 * the store does not get here. The caller then gets a denial for a second, as the call may pass after the outage.
 */
export function degradedAnswer(why: StoreFailure, answer: Answer, by: Keyspace): Answer {
  const used = by.policies.map((policy, i) => usedOf(answer, policy, i)) // by its share of the limits, which callers do not see
  if (answer.reason === 'cost') return undecidedAnswer(why, false, { ...answer, used }, by)
  const { now, at, reason, binding, remaining, resetAt, parts, booking, blockedUntil } = answer
  const degraded = { why, allowed: reason === undefined, by }
  const own = { now, at, reason, binding, remaining, resetAt, parts, used, booking, degraded }
  return blockedUntil === undefined ? own : { ...own, blockedUntil }
}

/** Microseconds. */
const RETRY_AFTER = 1_000_000

/** How every key stands in the mode 'deny'. */
export const NOTHING_PASSES: Answer = {
  now: 0,
  at: RETRY_AFTER,
  reason: undefined,
  binding: 0,
  remaining: 0,
  resetAt: RETRY_AFTER,
  parts: undefined,
  used: [],
  booking: undefined,
}

/**
 * Whether a call failed because of its store, so that the failure mode applies. Recognised by codes and names and not by
 * classes, because several copies of this package may meet in one process.
 */
export function isOutage(error: unknown): error is Error {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return name !== 'InputError' && !MISUSE.has(code as string)
}

/** Errors of the set-up or of the order of calls: waiting does not help, and no failure mode hides them. */
const MISUSE = new Set(['CLOSED', 'CLIENT_MISSING'])

/**
 * Why the store did not decide, by the `failure` that its error names, such as 'timeout'. A store of a user may throw any value:
 * without a known failure it counts as 'error'. The compiler refuses `includes` if FAILURES lacks a StoreFailure.
 */
export function failureOf(error: unknown): StoreFailure {
  const failure = (error as Partial<StoreError> | null | undefined)?.failure
  return failure !== undefined && FAILURES.includes(failure) ? failure : 'error'
}

/**
 * The failures of a server that did not answer, or cannot serve any call at the moment, so that the next call would fail as
 * well. They open the circuit; the others do not.
 */
export const SILENCES = ['timeout', 'unavailable', 'loading', 'busy'] as const
const FAILURES = [...SILENCES, 'overloaded', 'oom', 'readonly', 'forbidden', 'error'] as const

/**
 * The error of a call that was not sent because of an earlier failure, `because`: it has the same kind of failure, and `sent`
 * false.
 */
export function notAsked(because: Error): StoreError {
  const code = codeOf(failureOf(because))
  return new StoreError(code, `the store was not asked: ${because.message}`, { cause: because, sent: false })
}

/** Reports once when a store stops deciding, and once when it decides again. */
export class Health {
  /** Why the first decision was degraded, until the store has recovered. */
  outage: Outage | undefined = undefined
  #decisions = 0
  #lastAt = 0
  #reportedAt = -Infinity

  /**
   * Begins without an outage. Reports outages to `report`, at most one in `pauseMs`, with `endpoint`, the store's address. `now`
   * returns milliseconds of a clock that does not run back.
   */
  constructor(
    readonly report: Report,
    readonly endpoint: string | undefined,
    readonly pauseMs = 0,
    readonly now = nowMs,
  ) {}

  /**
   * Counts a decision that the store did not make because of `failure`. The first one begins an outage and is reported, unless
   * the last report was less than `pauseMs` ago; `outage` is set until the store has recovered.
   */
  degraded(failure: Error): void {
    this.#lastAt = this.now()
    this.#decisions++
    if (this.outage || this.#lastAt - this.#reportedAt < this.pauseMs) return
    this.#reportedAt = this.#lastAt
    this.outage = outageOf(failure, this.endpoint)
    this.report({ event: 'degraded', ...this.outage })
  }

  /**
   * Notes that the store has decided a call. Once it has done so for a while (QUIET_MS) without a degraded decision, the outage
   * is over: that is reported, with the number of decisions made without the store.
   */
  decided(): void {
    if (!this.outage || this.now() - this.#lastAt < QUIET_MS) return
    this.report({ event: 'recovered', ...this.outage, decisions: this.#decisions })
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
 * Reports the outages of a store as warnings of the process, because without a listener they would go unnoticed: one
 * when it stops answering and one when it answers again, at most one such pair a minute. Stores without an `endpoint`
 * are not reported.
 */
export function processHealth(endpoint: string | undefined, now?: () => number): Health {
  return new Health(warnOfOutage, endpoint, MINUTE_MS, now)
}

const MINUTE_MS = 60_000

/**
 * Writes a warning of the process if the notice says that a store does not decide (an outage), or that it decides again. Does
 * nothing for a store without an address (`endpoint`).
 */
function warnOfOutage(notice: Notice): void {
  if (!('endpoint' in notice) || notice.endpoint === undefined) return
  const { event, endpoint, reason, message } = notice
  if (event === 'recovered') warnProcess('STORE_RECOVERED', `the store at ${endpoint} decides again`)
  else warnProcess('STORE_DEGRADED', `the store at ${endpoint} is not usable (${reason}): ${message}`)
}

/**
 * Describes a failure of the store as listeners and warnings get it. The `cause` is the most precise code that there is: the code
 * of the error below the failure, which the store's client has thrown; else the word in capitals with which that error's message
 * begins, as in replies of Redis; else the code of the failure itself.
 */
function outageOf(failure: Error, endpoint: string | undefined): Outage {
  const { name, message, code = name, cause } = failure as Partial<StoreError> & Error
  const below = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  const reply = /^[A-Z]{2,}(?= )/.exec(String(below.message))?.[0]
  const codeBelow = typeof below.code === 'string' ? below.code : reply
  return { reason: failureOf(failure), cause: codeBelow ?? code, message, endpoint }
}
