import type { Decision, Permit, Policy } from '@sluice/core'
import {
  CHECKED,
  type CheckedOptions,
  clearTimer,
  KEY,
  nowMs,
  onAbort,
  REPORTS,
  setTimer,
  type TimerHandle,
} from '@sluice/core/internal'
import { RateLimitExceededError } from './exceeded.js'
import type { TenantQueue } from './priority-queue.js'
import { giveBack, settleHeld, type SettleSettings, type Used } from './settle.js'
import { type Ending, UNJUDGED } from './verdict.js'
import type { WaitingSettings } from './waiting-options.js'

/** The terms of a call to its queue, with all defaults applied. */
export interface CallTerms {
  /** One for each limiter, in their order, or one for all; the first is the key of the call in events and pauses. */
  readonly keys: readonly [string, ...string[]]
  readonly cost: number
  readonly priority: number
  /** Tenants of one priority take turns, each as often as its weight says; undefined without the option `fair`. */
  readonly tenant: string | undefined
  readonly weight: number
  /** For all attempts of the call together; Infinity without a bound. */
  readonly maxWaitMs: number
  readonly signal: AbortSignal | undefined
  /** How its units are reserved, and settled at its end. */
  readonly settle?: SettleSettings | undefined
  /** Marks the rejection of the call's promise as handled. */
  readonly silence?: () => void
}

/** A client, as the turns of its calls see it. */
export interface Client {
  readonly settings: WaitingSettings
  /** The policies of its calls at the first limiter; undefined: those of the limiter. */
  readonly policies: readonly Policy[] | undefined
  /** Called with each turn of a limiter: has the call wait for the next limiter. False: it was the last, and the call goes out. */
  enterNext(turn: Turn): boolean
  /** Called at each end of a turn; at the end of its wait before the promise settles. */
  ended(turn: Turn, end: 'granted' | 'refused' | 'returned'): void
}

/**
 * The turn of a call for one attempt, from the beginning of its wait to the end of the attempt. It is `granted` and, once the
 * attempt has ended, `returned`; or it is `refused`: when the signal aborts, by the queue, or at the call's deadline, unless a
 * turn of the limiter before that is booked. It owns its place in a queue, its booking and its pause.
 */
export class Turn {
  /** Attempts of the call so far, this one included. */
  readonly attempt: number
  /** When the wait began, and the deadline of all attempts; on the clock of `nowMs`. */
  readonly begunAt = nowMs()
  readonly until: number
  /** Resolves when the turn is granted, and rejects when it is refused. */
  readonly comes: Promise<void>
  /** The limiter that it waits for, by its place in the client's list; its key and policies there (undefined: the limiter's own). */
  stage = 0
  key: string
  policies: readonly Policy[] | undefined
  /** Where it waits in a queue; undefined outside. */
  line: TenantQueue<Turn> | undefined = undefined
  /** Whether it waits for the end of its client's pause. */
  isPaused = false
  /** Reports of limiter and semaphore to their listeners, made in the call's AsyncLocalStorage context; undefined without any. */
  reports: readonly (() => void)[] | undefined = undefined
  /** The decisions that gave the attempt its turns, in the order of their limiters. */
  decisions: Decision[] = []
  /** When the call went out, and what became of it. */
  sentAt = 0
  ending: Ending = UNJUDGED
  #permits: readonly Permit[] = []
  #booking: BookedTurn | undefined
  #isOverdue = false
  #isOut = false
  #delay: TimerHandle | undefined
  #deadline: TimerHandle | undefined
  #stopListening: (() => void) | undefined
  #resolve!: () => void
  #reject!: (error: unknown) => void

  /**
   * Begins the wait of a call for an attempt: the first, or the one after that of the turn `last`, whose deadline (`until`) it keeps.
   * `stored` is the call's key at the first limiter, as stores keep it. `comes` resolves when the call may go out. The wait ends as
   * refused when the call's signal aborts, or at the deadline, when a timer calls `recheck`.
   */
  constructor(
    readonly client: Client,
    readonly terms: CallTerms,
    readonly stored: string,
    last?: Turn,
  ) {
    const { keys, signal, maxWaitMs } = terms
    this.attempt = 1 + (last?.attempt ?? 0)
    this.until = last?.until ?? this.begunAt + maxWaitMs
    this.key = keys[0]
    this.policies = client.policies
    this.comes = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#stopListening = signal && onAbort(signal, () => this.refused(signal.reason))
    if (this.until < Infinity) {
      const atDeadline = (): void => {
        this.#isOverdue = true
        this.recheck()
      }
      this.#deadline = setTimer(atDeadline, Math.max(0, this.until - this.begunAt))
    }
  }

  /** Waits for `ms` milliseconds before it enters a queue, by `enter`. */
  delay(ms: number, enter: () => void): void {
    this.#delay = setTimer(enter, ms)
  }

  /** Waits for the end of its client's pause, in no queue and without a booking. */
  pause(): void {
    this.isPaused = true
    this.recheck()
  }

  /** Notes in which line of a queue the turn waits; undefined once it has left. */
  standIn(line: TenantQueue<Turn> | undefined): void {
    this.line = line
    this.isPaused = false
  }

  /**
   * Waits for the limiter at place `stage` of the client's list. At 0, the first, the wait begins anew: the turns that the call has
   * are given back, and it waits under the client's present policies.
   */
  goTo(stage: number): void {
    if (stage === 0) this.#giveBack()
    this.stage = stage
    this.key = this.terms.keys[stage] ?? this.terms.keys[0]
    this.policies = stage === 0 ? this.client.policies : undefined
  }

  /** Makes the booking of this turn, with which its queue asks the limiter. */
  book(): BookedTurn {
    return (this.#booking = new BookedTurn(this))
  }

  /** Passes the booking on to `heir`, which gets none if this turn has none. Without an heir the booking is cancelled. */
  passOn(heir?: Turn): void {
    const booking = this.#booking
    this.#booking = undefined
    if (heir) heir.#booking = booking
    booking?.moveTo(heir)
  }

  /**
   * Refuses the call if its deadline has passed, unless it has a booking that was made for this deadline or an earlier one: if such
   * a turn is late, the store refuses it, and a timer may be late itself.
   */
  recheck(): void {
    const hasTimelyBooking = this.#booking !== undefined && this.#booking.until <= this.until
    if (!this.#isOverdue || hasTimelyBooking) return
    this.refused(new RateLimitExceededError(this.key, this.isPaused ? 'paused' : 'queue'))
  }

  /**
   * Gives the call the turn of a limiter, with its `decision`, and permits. If further limiters have to give a turn, the call waits
   * for the next; otherwise the wait ends, and the call goes out.
   */
  granted(decision: Decision | undefined, permits: readonly Permit[]): void {
    if (decision) this.decisions.push(decision)
    this.#permits = permits
    this.#booking = undefined
    if (this.client.enterNext(this)) return
    this.#isOut = true
    this.sentAt = nowMs()
    this.#endWait('granted')
    this.#resolve()
  }

  /**
   * Refuses the call, which does not go out: gives back its turns and permits, and ends its wait, which rejects with `error`. If the
   * turn was granted already, but its caller has not gone on yet, there is no wait left to reject: the attempt ends as returned, and
   * the caller sees the abort itself.
   */
  refused(error: unknown): void {
    this.#giveBack()
    if (this.#isOut) return this.returned()
    this.#endWait('refused')
    this.#reject(error)
  }

  /** Adds reports of limiter and semaphore about the booking, for the call to make. */
  addReports(reports: readonly (() => void)[]): void {
    this.reports = [...(this.reports ?? []), ...reports]
  }

  /**
   * Ends the attempt: gives the permits back, with what became of the call (`ending`), and settles its reservations at the units
   * that it has `used`. Does nothing before the turn is granted, and the second time.
   */
  returned(used?: Used): void {
    if (!this.#isOut) return
    this.#isOut = false
    const { outcome, tookMs } = this.ending
    for (const permit of this.#permits) permit.release(outcome, tookMs).catch(() => {})
    const { settle, cost } = this.terms
    if (settle) settleHeld(this.decisions, settle, cost, used)
    this.client.ended(this, 'returned')
  }

  /** Notes what became of the attempt. */
  judged(ending: Ending): void {
    this.ending = ending
  }

  /** Gives back permits and turns that are not used. */
  #giveBack(): void {
    releaseUnused(this.#permits)
    this.#permits = []
    for (const decision of this.decisions.splice(0)) giveBack(decision)
  }

  /** Ends the wait: stops its timers, stops listening for an abort, and reports the end to the client. */
  #endWait(end: 'granted' | 'refused'): void {
    this.#isOverdue = false
    if (this.#deadline !== undefined) clearTimer(this.#deadline)
    if (this.#delay !== undefined) clearTimer(this.#delay)
    this.#stopListening?.()
    this.client.ended(this, end)
  }
}

/** Releases permits under which no call went out. */
export function releaseUnused(permits: readonly Permit[]): void {
  for (const permit of permits) permit.release('failed').catch(() => {})
}

/**
 * A booking of permits of semaphores and then a turn of a limiter. It serves any call of the same cost, policies, settlement and
 * keys of permits, so it may pass from the turn of one call to that of another.
 */
export class BookedTurn {
  /** Reports of limiter and semaphore, made by the call that gets the turn or is refused; undefined without listeners. */
  reports: (() => void)[] | undefined = undefined
  readonly cost: number
  readonly policies: readonly Policy[] | undefined
  readonly keys: CallTerms['keys']
  readonly settle: SettleSettings | undefined
  /** The turn comes by then or not at all. It is the deadline of the call for which it was asked, which may be another call. */
  until: number
  #turn: Turn | undefined
  #controller: AbortController | undefined = spareControllers.pop() ?? new AbortController()

  /**
   * Makes a booking, a request for a turn of the limiter and permits, for the waiting call of `turn`. It may pass to another call of
   * the same cost, policies, keys and settlement, so these are kept here. `until` is the deadline of the call that has it.
   */
  constructor(turn: Turn) {
    this.#turn = turn
    this.cost = turn.terms.cost
    this.policies = turn.policies
    this.keys = turn.terms.keys
    this.settle = turn.terms.settle
    this.until = turn.until
  }

  /** Whether no call needs it any more. */
  get isCancelled(): boolean {
    return this.#controller?.signal.aborted === true
  }

  keep(report: () => void): void {
    ;(this.reports ??= []).push(report)
  }

  /** Passes to another turn; without one it is cancelled, unless it has ended. */
  moveTo(turn: Turn | undefined): void {
    this.#turn = turn
    if (!turn) this.#controller?.abort(UNNEEDED)
  }

  /**
   * Makes the options with which to ask for a permit or a turn, for the call that has the booking now: it passes on to the next call
   * when its own ends before. `maxWait` is the milliseconds until the deadline of that call, at most a day, and 0 without a call; the
   * deadline is kept as `until`. `stored` is the key, as stores keep it. The options refer to themselves as checked, so that limiters
   * and semaphores check no copy of them and not these again.
   */
  options(stored: string): CheckedOptions {
    this.until = this.#turn?.until ?? 0
    const untilDeadlineMs = Math.min(LONGEST_WAIT_MS, this.until - nowMs())
    const maxWait = Math.max(0, Math.floor(untilDeadlineMs))
    const { cost, policies } = this
    const { signal } = this.#controller!
    const options = {
      [CHECKED]: {},
      [KEY]: stored,
      [REPORTS]: this,
      cost,
      ...(policies && { policies }),
      maxWait,
      signal,
    }
    options[CHECKED] = options
    return options
  }

  /** Ends the booking. Returns the turn that has it, if one still does. Its controller is kept for reuse, unless it has aborted. */
  end(): Turn | undefined {
    const turn = this.#turn
    this.#turn = undefined
    const controller = this.#controller
    if (!controller || controller.signal.aborted) return turn
    if (spareControllers.length < MOST_SPARE) spareControllers.push(controller)
    this.#controller = undefined
    return turn
  }
}

/** Controllers of bookings that were not cancelled, for reuse: making one costs more than the rest of a turn. */
const spareControllers: AbortController[] = []
const MOST_SPARE = 100
export const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000
const UNNEEDED = new Error('no call needs this turn any more')
