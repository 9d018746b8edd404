import type { Booking, Keyspace, MaybePromise } from '../stores/store.js'

/** A place that was booked in a keyspace for a call that waits. A failure of the store rejects nothing here. */
export class BookedPlace {
  readonly #keyspace: Keyspace
  readonly #booking: Booking | undefined

  constructor(keyspace: Keyspace, booking: Booking | undefined) {
    this.#keyspace = keyspace
    this.#booking = booking
  }

  /** Whether the place may be used at its turn. A held place is given back; if the store cannot confirm, the place stands. */
  async stands(): Promise<boolean> {
    const booking = this.#booking
    if (!booking) return true
    const state = await attempt(() => this.#keyspace.confirm(booking), 'stands')
    if (state === 'held') await this.cancel()
    return state === 'stands'
  }

  /** Gives the place back. If the store fails, the place stays booked. */
  async cancel(): Promise<void> {
    const booking = this.#booking
    if (booking) await attempt(() => this.#keyspace.cancel(booking), false)
  }
}

/** The result of `act`, or `otherwise` if the store fails. */
async function attempt<T>(act: () => MaybePromise<T>, otherwise: T): Promise<T> {
  try {
    return await act()
  } catch {
    return otherwise
  }
}
