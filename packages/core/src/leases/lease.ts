import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer, Booking } from '../stores/store.js'

/** A key that was called once within a ttl, and therefore has no lease. */
export interface ColdKey {
  readonly calledAt: number
  /** `remaining` of the store's last answer. */
  remaining: number
}

/** A call that waits until units are booked. */
export interface LeaseWaiter {
  readonly cost: number
  readonly resolve: (answer: Answer | Promise<Answer>) => void
  readonly reject: (error: unknown) => void
}

/** Units that were taken out of a lease. */
export interface LeasedUnits extends Booking {
  readonly lease: Lease
  /** The store's answer to the charge that had filled the lease with them. */
  readonly filledBy: Answer
}

/** Whether a booking is of units out of a lease (units that this process holds for a key), and not made by the store. */
export function isLeased(booking: Booking): booking is LeasedUnits {
  return 'lease' in booking
}

/** The part of one key's allowance that this process holds: about half of the demand expected within one ttl. */
export class Lease {
  /** `remaining` of the store's last answer. */
  remaining: number
  #calledAt: number
  /** Exponential moving average (alpha 1/4) of the time between calls, in microseconds. */
  #meanGap: number
  #units = 0
  #servesUntil = -Infinity
  #filledAt = 0
  #filledBy: Answer | undefined
  #isDropped = false
  #isBooking = false
  #waiters: LeaseWaiter[] = []
  /** Units for which calls may still join the booking in flight. */
  #joinableUnits = 0

  /**
   * Makes the lease of a key: units that are charged in the store in advance, for calls within `ttl` microseconds. It begins without
   * units. A first call (`calledAt`) has shown what `remaining` of the key was left in the store, of which a share may be charged.
   * `#meanGap`, the average time between calls, tells how many units to charge. It begins at a whole ttl, so that none are charged in
   * advance until several calls have come faster.
   */
  constructor(
    readonly policies: readonly Policy[],
    private readonly ttl: number,
    { calledAt, remaining }: ColdKey,
  ) {
    this.remaining = remaining
    this.#meanGap = ttl
    this.#calledAt = calledAt
  }

  /**
   * Whether the lease can be forgotten: the key was not called for a whole `ttl`, so all units have expired, and no call to the
   * store for more is in flight (`#isBooking`).
   */
  isCold(now: number): boolean {
    return now - this.#calledAt >= this.ttl && !this.#isBooking
  }

  /**
   * Notes a call of the key at `now` (microseconds). The demand is estimated from `#meanGap`, the moving average of the time between
   * calls, in which the newest time counts a quarter.
   */
  recordCall(now: number): void {
    this.#meanGap += (now - this.#calledAt - this.#meanGap) / 4
    this.#calledAt = now
  }

  /**
   * Serves a call at `now`: takes `cost` units out of the lease, which were charged in the store in advance, and returns the
   * call's answer. Undefined, with nothing taken, if the lease does not hold as many or has ended (`#servesUntil`).
   */
  serve(cost: number, now: number): Answer | undefined {
    if (cost > this.#units || now >= this.#servesUntil) return undefined
    this.#units -= cost
    return this.#answer(now)
  }

  /** Returns an answer if `serve` would serve a call of this cost, and takes nothing. Undefined otherwise. */
  peek(cost: number, now: number): Answer | undefined {
    return cost > this.#units || now >= this.#servesUntil ? undefined : this.#answer(now)
  }

  /**
   * Serves a part of a call on several keys, as `serve` does. The answer has a booking, by which `putBack` can put the units back.
   * They were charged in the store when the lease was filled (`chargedAt`).
   */
  take(key: string, cost: number, now: number): Answer | undefined {
    const answer = this.serve(cost, now)
    if (!answer) return undefined
    const { epoch } = answer
    const at = answer.chargedAt!
    const filledBy = this.#filledBy!
    const booking: LeasedUnits = { key, at, cost, decidedAt: at, epoch, lease: this, filledBy }
    return { ...answer, booking }
  }

  /**
   * Puts back units that `take` took for a call on several keys, as another key was denied. Returns false, and does nothing, if the
   * lease was dropped or filled by another charge since: the caller then has to give the units back to the store.
   */
  putBack({ cost, filledBy }: LeasedUnits): boolean {
    if (filledBy !== this.#filledBy || this.#isDropped) return false
    this.#units += cost
    return true
  }

  /**
   * Has a call wait for the charge in the store that is being made for this lease, and returns the promise of its answer. Undefined
   * if there is none, or if it is not likely to bring enough units: `#joinableUnits` is what calls may still claim of it.
   */
  join(cost: number): Promise<Answer> | undefined {
    if (!this.#isBooking || cost > this.#joinableUnits) return undefined
    this.#joinableUnits -= cost
    return this.wait(cost)
  }

  /**
   * Begins a booking: a charge in the store for calls that wait and for units in advance. Returns false, and begins none, if one is
   * in flight already, or if no units would be charged in advance beside `cost`. Until it is sent, calls may join for what remains
   * of the key (`#joinableUnits`). `size` is the most units in advance, and `mostUnits` the most of one call to the store.
   */
  beginBooking(cost: number, size: number, mostUnits: number): boolean {
    if (this.#isBooking) return false
    const wanted = cost // by the one call that begins it
    if (this.#unitsInAdvance(wanted, cost, size, mostUnits) === 0) return false
    this.#isBooking = true
    this.#joinableUnits = Math.min(mostUnits, this.remaining) - cost
    return true
  }

  /** Adds a call of `cost` units to those that the next booking is sent for. Returns the promise of its answer. */
  wait(cost: number): Promise<Answer> {
    return new Promise((resolve, reject) => this.#waiters.push({ cost, resolve, reject }))
  }

  /**
   * Returns what a booking is about to be sent for: the calls that wait, the units that they want, and the units to charge in
   * advance (`spare`). From now on calls may join for the spare units only. `size` is the most spare units, `mostUnits` the most
   * units of one call to the store.
   */
  prepareBooking(size: number, mostUnits: number): { waiters: LeaseWaiter[]; wanted: number; spare: number } {
    const waiters = this.#waiters.splice(0)
    const wanted = waiters.reduce((sum, { cost }) => sum + cost, 0)
    const { cost } = waiters[0]!
    const spare = this.#unitsInAdvance(wanted, cost, size, mostUnits)
    this.#joinableUnits = spare
    return { waiters, wanted, spare }
  }

  /** Ends a booking, a charge in the store for this lease, and returns the calls that joined it after it was sent. */
  endBooking(): LeaseWaiter[] {
    this.#isBooking = false
    return this.#waiters.splice(0)
  }

  /**
   * Fills the lease with the `spare` units that a charge in the store has taken in advance, to be served until the instant
   * `until`. They replace what was left in it, which stays charged. Calls that are served from it get the store's `answer`, with its
   * time moved on from `now`. Instants are microseconds of this process. Does nothing if the lease was dropped.
   */
  fill(answer: Answer, spare: number, until: number, now: number): void {
    if (this.#isDropped || spare === 0) return
    this.#filledBy = answer
    this.#units = spare
    this.#servesUntil = until
    this.#filledAt = now
  }

  /**
   * Ends the lease for good, because its key was corrected or the limiter closes: it serves no call any more, and a charge in
   * flight does not fill it.
   */
  drop(): void {
    this.#isDropped = true
    this.#units = 0
    this.remaining = 0
  }

  /**
   * Returns the units to charge in advance, beyond the `wanted` units of calls that wait. It aims at half of what the key's calls
   * will take within one ttl, so that few units expire unused: a call of this `cost` comes every `#meanGap` microseconds. The result
   * has three bounds: the option `size`; half of what the waiting calls leave of the key (`remaining`), so that other processes
   * get a share; and what they leave of `mostUnits`, the most that one call to the store may charge. It is a multiple of `cost`,
   * and 0 once the lease has ended for good (`drop`).
   */
  #unitsInAdvance(wanted: number, cost: number, size: number, mostUnits: number): number {
    if (this.#isDropped) return 0
    const callsInHalfTtl = Math.floor(this.ttl / (2 * this.#meanGap))
    const halfOfRest = Math.floor((this.remaining - wanted) / 2)
    const units = Math.min(callsInHalfTtl * cost, size, halfOfRest, mostUnits - wanted)
    return units < cost ? 0 : units - (units % cost)
  }

  /**
   * Makes the answer to a call that is served from the lease at `instant`, a time of this process, out of the store's answer that
   * filled it, with its time moved on by what has passed since. In the store all units of the lease count as used, so `remaining` is
   * at least what the lease still holds. `parts` has three numbers a policy, of which the second is its `remaining`.
   */
  #answer(instant: number): Answer {
    const { now: decidedAt, at: chargedAt, binding, remaining, resetAt, parts, epoch } = this.#filledBy!
    const now = decidedAt + Math.max(0, instant - this.#filledAt)
    const units = this.#units
    return {
      now,
      at: now,
      reason: undefined,
      binding,
      remaining: Math.max(remaining, units),
      resetAt,
      parts: parts?.map((part, i) => (i % 3 === 1 ? Math.max(part, units) : part)),
      booking: undefined,
      chargedAt,
      epoch,
      from: 'lease',
    }
  }
}
