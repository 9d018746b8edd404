import type { Reservation } from './reservation.js'

/** The units that open reservations of a limiter hold, as far as this process made them. */
export class HeldUnits {
  readonly #open = new Map<Reservation, number>()
  /** The number of reservations at which those that have ended are forgotten. */
  #sweepAtSize = LEAST_SWEPT_SIZE

  /**
   * Adds a reservation of `cost` units; `now` is the store's time. Each time the number of reservations has doubled, those that have
   * ended are forgotten.
   */
  add(reservation: Reservation, cost: number, now: number): void {
    this.#open.set(reservation, cost)
    if (this.#open.size < this.#sweepAtSize) return
    this.sum(now) // forgets those that have ended
    this.#sweepAtSize = Math.max(LEAST_SWEPT_SIZE, 2 * this.#open.size)
  }

  /** Returns the sum of the units that open reservations of this limiter hold at `now`, by their costs, and forgets the other ones. */
  sum(now: number): number {
    let units = 0
    for (const [reservation, cost] of this.#open) {
      if (reservation.isOpen(now)) units += cost
      else this.#open.delete(reservation)
    }
    return units
  }
}

const LEAST_SWEPT_SIZE = 100
