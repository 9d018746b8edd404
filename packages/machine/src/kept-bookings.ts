import type { Booking } from '@sluice/core/store'

/**
 * The bookings that other processes made, by number. A booking is forgotten a minute after its turn, when nobody asks for it
 * any more; the check is made each time their number has doubled.
 */
export class KeptBookings {
  readonly #byNumber = new Map<number, Booking>()
  #numbers = 0
  #sweepAt = LEAST_SWEPT

  /** The number of the booking from now on. */
  keep(booking: Booking, now: number): number {
    const number = ++this.#numbers
    this.#byNumber.set(number, booking)
    if (this.#byNumber.size >= this.#sweepAt) this.#sweep(now)
    return number
  }

  /** Undefined once it is forgotten. */
  get(number: number): Booking | undefined {
    return this.#byNumber.get(number)
  }

  forget(number: number): void {
    this.#byNumber.delete(number)
  }

  #sweep(now: number): void {
    for (const [number, { at }] of this.#byNumber) if (at + KEPT < now) this.#byNumber.delete(number)
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#byNumber.size)
  }
}

const LEAST_SWEPT = 1024
/** Microseconds. */
const KEPT = 60_000_000
