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

/** Units that were taken from a lease. */
export interface LeasedUnits extends Booking {
  readonly lease: Lease
  /** The answer that brought them. */
  readonly slice: Answer
}

/** Whether a booking is of units that a lease of this process held, rather than one that the store has made. */
export function isLeased(booking: Booking): booking is LeasedUnits {
  return 'lease' in booking
}

/** The part of one key's allowance that this process holds: about half of the demand expected within one ttl. */
export class Lease {
  /** `remaining` of the store's last answer. */
  remaining: number
  #calledAt: number
  /** Exponential moving average (alpha 1/4) of the time between calls, in microseconds. */
  #gap: number
  #units = 0
  #until = -Infinity
  #filledAt = 0
  #filledBy: Answer | undefined
  #isDropped = false
  #isBooking = false
  #waiters: LeaseWaiter[] = []
  /** Units for which calls may still join the booking in flight. */
  #room = 0

  /** A lease of a key that was called a second time within a ttl. It begins without units. */
  constructor(
    readonly policies: readonly Policy[],
    private readonly ttl: number,
    { calledAt, remaining }: ColdKey,
  ) {
    this.remaining = remaining
    this.#gap = ttl
    this.#calledAt = calledAt
  }

  /**
   * Whether the key was not called for a whole lifetime of a lease (`ttl`) and no booking is in flight, so that the
   * lease holds nothing any more.
   */
  isCold(now: number): boolean {
    return now - this.#calledAt >= this.ttl && !this.#isBooking
  }

  /** Updates the moving average of the time between two calls of the key, from which the demand is estimated. */
  recordCall(now: number): void {
    this.#gap += (now - this.#calledAt - this.#gap) / 4
    this.#calledAt = now
  }

  /**
   * Takes `cost` units out of the lease and returns the answer to the call; undefined if the lease does not hold as
   * many or has ended.
   */
  serve(cost: number, now: number): Answer | undefined {
    if (cost > this.#units || now >= this.#until) return undefined
    this.#units -= cost
    return this.#answer(now)
  }

  /**
   * The answer to a part of a call on several keys that the lease can serve; undefined if it does not hold the units.
   * With `isTaken` the units are taken, and `putBack` undoes that.
   */
  reserve(key: string, cost: number, now: number, isTaken: boolean): Answer | undefined {
    if (cost > this.#units || now >= this.#until) return undefined
    if (!isTaken) return this.#answer(now)
    this.#units -= cost
    const answer = this.#answer(now)
    const at = answer.chargedAt!
    const booking: LeasedUnits = { key, at, cost, decidedAt: at, lease: this, slice: this.#filledBy! }
    return { ...answer, booking }
  }

  /**
   * Puts units back that were taken for a call on several keys. Returns false, and does nothing, if the lease has been
   * filled anew or dropped since: they belong to units that have expired.
   */
  putBack({ cost, slice }: LeasedUnits): boolean {
    if (slice !== this.#filledBy || this.#isDropped) return false
    this.#units += cost
    return true
  }

  /**
   * Has a call wait for the booking that is in flight, if the units which that prefetches are likely to suffice.
   * Returns the promise of its answer; undefined where it has to ask by itself.
   */
  join(cost: number): Promise<Answer> | undefined {
    if (!this.#isBooking || cost > this.#room) return undefined
    this.#room -= cost
    return this.wait(cost)
  }

  /** Begins a booking. Returns false if one is in flight already, or if no units can be prefetched. */
  beginBooking(cost: number, size: number, mostUnits: number): boolean {
    if (this.#isBooking || this.#prefetch(cost, cost, size, mostUnits) === 0) return false
    this.#isBooking = true
    this.#room = Math.min(mostUnits, this.remaining) - cost
    return true
  }

  /** Adds a call of `cost` units to those that the next booking is sent for. Returns the promise of its answer. */
  wait(cost: number): Promise<Answer> {
    return new Promise((resolve, reject) => this.#waiters.push({ cost, resolve, reject }))
  }

  /**
   * The calls that a booking is sent for now, the units that they want, and the units to prefetch beyond these. Calls
   * that come later may join for the prefetched ones.
   */
  sendBooking(size: number, mostUnits: number): { waiters: LeaseWaiter[]; wanted: number; spare: number } {
    const waiters = this.#waiters.splice(0)
    const wanted = waiters.reduce((sum, { cost }) => sum + cost, 0)
    const spare = this.#prefetch(wanted, waiters[0]!.cost, size, mostUnits)
    this.#room = spare
    return { waiters, wanted, spare }
  }

  /** Ends a booking. Returns the calls that joined after it was sent. */
  endBooking(): LeaseWaiter[] {
    this.#isBooking = false
    return this.#waiters.splice(0)
  }

  /**
   * Puts the `spare` units that a charge in the store has prefetched into the lease, to be served until the instant
   * `until`. Calls that are served from it get `answer`, the store's, moved on in time. Instants are microseconds.
   */
  fill(answer: Answer, spare: number, until: number, now: number): void {
    if (this.#isDropped || spare === 0) return
    this.#filledBy = answer
    this.#units = spare
    this.#until = until
    this.#filledAt = now
  }

  /** Ends the lease, because its key was corrected: it serves nothing any more, not even from a booking in flight. */
  drop(): void {
    this.#isDropped = true
    this.#units = 0
    this.remaining = 0
  }

  /**
   * Units to prefetch beyond `wanted`: half of the demand expected within one ttl, so that few expire unused, and at most
   * half of the remaining allowance, so that other processes get a share. Rounded down to a multiple of `cost`.
   */
  #prefetch(wanted: number, cost: number, size: number, mostUnits: number): number {
    if (this.#isDropped) return 0
    const expected = Math.floor(this.ttl / (2 * this.#gap)) * cost
    const units = Math.min(expected, size, Math.floor((this.remaining - wanted) / 2), mostUnits - wanted)
    return units < cost ? 0 : units - (units % cost)
  }

  /**
   * The answer to a call that is served from the lease: the store's when the lease was booked, moved on in time. All of
   * the lease counts as used there, so `remaining` is at least what the lease holds; what other processes took since is
   * unknown.
   */
  #answer(instant: number): Answer {
    const { now: decidedAt, at: chargedAt, binding, remaining, resetAt, parts } = this.#filledBy!
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
      from: 'lease',
    }
  }
}
