import type { Booking, Keyspace, MaybePromise } from '../stores/store.js'

/** A booking, in the keyspace that holds it, of a call that waits. A failure of the store rejects nothing here. */
export class KeyspaceBooking {
  readonly #keyspace: Keyspace
  readonly #booking: Booking | undefined
  #cancelled: Promise<boolean> | undefined

  constructor(keyspace: Keyspace, booking: Booking | undefined) {
    this.#keyspace = keyspace
    this.#booking = booking
  }

  /** Whether the call may pass at its turn. A booking on a held key is cancelled; if the store cannot confirm, the booking stands. */
  async stands(): Promise<boolean> {
    const booking = this.#booking
    if (!booking) return true
    const state = await attempt(() => this.#keyspace.confirm(booking), 'stands')
    if (state === 'held') await this.cancel()
    return state === 'stands'
  }

  /** Cancels the booking, once however often it is called. If the store fails, it stays. */
  async cancel(): Promise<void> {
    const booking = this.#booking
    if (booking) await (this.#cancelled ??= attempt(() => this.#keyspace.cancel(booking), false))
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
