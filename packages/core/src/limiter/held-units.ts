import type { Reservation } from './reservation.js'

/** The units that open reservations of a limiter hold, as far as this process made them. */
export class HeldUnits {
  readonly #open = new Map<Reservation, number>()
  #sweepAt = LEAST_SWEPT

  /** Adds a reservation of `cost` units; `now` is the store's time. At double the number, forgets those that hold none any more. */
  add(reservation: Reservation, cost: number, now: number): void {
    this.#open.set(reservation, cost)
    if (this.#open.size < this.#sweepAt) return
    this.sum(now)
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#open.size)
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

const LEAST_SWEPT = 100
