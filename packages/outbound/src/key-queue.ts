import type { Decision, Limiter, Permit, Policy, Semaphore } from '@sluice/core'
import { type ExceededReason, RateLimitExceededError } from './exceeded.js'
import { KeyPause } from './key-pause.js'
import { Lanes } from './lanes.js'
import { fits, patience, type QueueEntry, type Reservation, swap } from './reservation.js'

/**
 * The calls of this process that wait for one key of a limiter. At most `prefetch` turns are reserved at a time; each is
 * given to the call that is first when it comes, so a new call of high priority waits for at most that many. The permit of
 * the semaphore is taken before the turn of the limiter: a turn is an instant, which a wait for the permit would miss.
 */
export class KeyQueue {
  readonly key: string
  readonly pause = new KeyPause()
  /** Calls that wait for this key: in this queue, before another attempt, or in a client that is paused. */
  waiting = 0
  readonly #limiter: Limiter
  readonly #semaphore: Semaphore | undefined
  readonly #lanes = new Lanes<QueueEntry>()
  readonly #reservations = new Set<Reservation>()
  #holding: Promise<void> | undefined

  constructor(limiter: Limiter, semaphore: Semaphore | undefined, key: string) {
    this.#limiter = limiter
    this.#semaphore = semaphore
    this.key = key
  }

  /** No call waits, and no pause is on: the queue can be dropped. */
  get idle(): boolean {
    return this.waiting === 0 && this.#reservations.size === 0 && this.pause.leftMs === 0
  }

  /** Adds a call, which is admitted at its turn or refused. */
  add(entry: QueueEntry): void {
    this.#lanes.add(entry)
    void this.#reserve()
  }

  /** The call's reservation passes to the first call of the same cost that has none; without such a call it is cancelled. */
  remove(entry: QueueEntry): void {
    this.#lanes.delete(entry)
    const { reservation } = entry
    if (!reservation) return
    const heir = this.#lanes.first((other) => !other.reservation && fits(reservation, other))
    entry.reservation = undefined
    reservation.entry = heir
    if (heir) heir.reservation = reservation
    else reservation.controller.abort(UNNEEDED)
  }

  /** Holds the key for the whole fleet. Returns whether this pause ends later than any known before. */
  hold(ms: number, policies: readonly Policy[] | undefined): boolean {
    if (!this.pause.begin(ms)) return false
    this.#holding = this.#limiter.hold(this.key, Math.ceil(ms), shaped(policies)).catch(() => {})
    // Reserved turns may be too close to be confirmed by the store.
    this.reserveAnew()
    return true
  }

  /** Cancels all reservations and makes new ones. */
  reserveAnew(): void {
    for (const { controller } of this.#reservations) controller.abort(ANEW)
  }

  /** Reserves turns for the first calls, as many as may be reserved at once. */
  async #reserve(): Promise<void> {
    await this.#holding
    for (;;) {
      const entry = this.#lanes.first(({ reservation }) => !reservation)
      if (!entry || this.#reservations.size >= entry.prefetch) return
      void this.#serve(entry)
    }
  }

  async #serve(entry: QueueEntry): Promise<void> {
    const { cost, policies } = entry
    const reservation: Reservation = {
      cost,
      policies,
      controller: spare.pop() ?? new AbortController(),
      entry,
      until: entry.until,
    }
    entry.reservation = reservation
    this.#reservations.add(reservation)
    let permit: Permit | undefined
    let failure: unknown
    try {
      permit = await this.#semaphore?.acquire(this.key, patience(reservation))
      if (permit?.allowed === false) throw this.exceeded('concurrency')
      const options = { cost, ...shaped(policies), ...patience(reservation) }
      const decision = await this.#limiter.acquire(this.key, options)
      if (!decision.allowed) throw this.exceeded(decision.reason, decision)
      this.#admitFirst(reservation, decision, permit)
    } catch (error) {
      void permit?.release()
      failure = error
    }
    this.#reservations.delete(reservation)
    const { aborted } = reservation.controller.signal
    if (!aborted && spare.length < MOST_SPARE) spare.push(reservation.controller)
    const left = reservation.entry
    if (left) left.reservation = undefined
    // A call that waits longer than this turn was looked for gets another one.
    const isFinal = failure !== undefined && !aborted && left !== undefined && left.until <= reservation.until
    if (isFinal) left.refuse(failure)
    else left?.recheck()
    void this.#reserve()
  }

  /** Admits the call that is first by now. If every call of this cost has just left, permit and turn are given back. */
  #admitFirst(reservation: Reservation, decision: Decision, permit: Permit | undefined): void {
    const release = (): void => void permit?.release()
    const first = this.#lanes.first((entry) => fits(reservation, entry))
    if (!first) {
      release()
      decision.settle(0).catch(() => {})
      return
    }
    const before = reservation.entry
    swap(first, reservation)
    reservation.entry = first.reservation = undefined
    first.admit({ decision, release })
    if (before?.isLinked) before.recheck()
    if (decision.lateMs > (first.latenessMs ?? latenessMs(decision))) this.#payAgain(reservation)
  }

  /**
   * A call that goes out late comes closer to the calls behind it. Therefore one more turn, which no call uses, is booked at
   * the end of the queue: any span of the window then lacks either the turn that the call missed or this one.
   */
  #payAgain({ cost, policies }: Reservation): void {
    this.#limiter.acquire(this.key, { cost, ...shaped(policies), maxWait: LONGEST_WAIT }).catch(() => {})
  }

  exceeded(reason: ExceededReason, decision?: Decision): RateLimitExceededError {
    return new RateLimitExceededError(this.key, reason, decision)
  }
}

function shaped(policies: readonly Policy[] | undefined): { readonly policies?: readonly Policy[] } {
  return policies ? { policies } : {}
}

/** Timers alone cause less lateness than this, and the reserve below the provider's limit absorbs it. */
function latenessMs({ policies }: Decision): number {
  return Math.max(LEAST_LATENESS_MS, Math.min(...policies.map(({ windowMs }) => windowMs)) / 100)
}

/** Controllers of reservations that were not aborted, for reuse: making one costs more than the rest of a turn. */
const spare: AbortController[] = []
const MOST_SPARE = 100
const LEAST_LATENESS_MS = 10
const LONGEST_WAIT = '1d'
const ANEW = new Error('turns are reserved anew')
const UNNEEDED = new Error('no call needs this turn any more')
