import { SENT_AGAIN, type ReservationChange, type Reserved } from '../stores/reservations.js'
import type { Reservations } from '../stores/store.js'
import { checkCost } from '../values/cost.js'
import { type Duration, parseDuration } from '../values/duration.js'
import { expectedButGot, InputError, SluiceError, type StoreError } from '../values/errors.js'

/** What became of a settled reservation. */
export interface Settlement {
  /** Units that took effect, below 0 if units were given back. 0 for one that was settled before and has ended since. */
  readonly units: number
  /** Whether the reservation had ended before, or the store had lost it: all of its real cost was charged now. */
  readonly late: boolean
}

/** Units that are charged until they are settled, or until an end at which the store itself gives them back. */
export class Reservation {
  #reserved: Reserved
  #settling: Promise<Settlement> | undefined
  /** The first failure of a settling that may have been carried out all the same, and until when it may be sent again. */
  #unsureFailure: { readonly error: unknown; readonly until: number } | undefined
  /** @internal The real cost of a settling that has failed: one that makes up for it has the same. */
  failedCost: number | undefined
  readonly #reservations: Pick<Reservations, 'change'> | undefined
  readonly #now: () => number

  /**
   * Makes the handle by which a caller settles, extends or releases the units that were reserved. `reservations` carries that
   * out in the store; without it, as in shadow mode, nothing is held. `now` is the store's time.
   */
  constructor(reservations: Pick<Reservations, 'change'> | undefined, reserved: Reserved, now: () => number) {
    this.#reservations = reservations
    this.#reserved = reserved
    this.#now = now
  }

  /** Names it in any process, to `limiter.reservation`, and until when it lasts: after `extend` it is another one. */
  get id(): string {
    const { id, decidedAt, end } = this.#reserved
    return [id, decidedAt, end].map((number) => number.toString(36)).join('-')
  }

  /** Whether `settle` or `release` was called, and is not to be called again after a failure. */
  get isSettled(): boolean {
    return this.#settling !== undefined || this.#isTooLateToRepeat
  }

  /** @internal Whether it holds its units at `now`, in microseconds of the store's time. */
  isOpen(now: number): boolean {
    return this.#reservations !== undefined && !this.isSettled && now < this.#reserved.end
  }

  /**
   * Corrects the cost to the real one and ends the reservation: once, however often it is called and from whichever process.
   * Once the reservation has ended, the real cost is charged now (`late`). After a failure it may be called again until half a minute
   * after the reservation's end, or after the first call if that came later; then only where it was surely not carried out.
   * @throws {InputError} INVALID_COST; {StoreError} when the store fails.
   */
  settle(realCost: number): Promise<Settlement> {
    try {
      checkCost(realCost, 'real cost')
    } catch (error) {
      return Promise.reject(error)
    }
    if (this.#isTooLateToRepeat) return Promise.reject(this.#unsureFailure!.error)
    return (this.#settling ??= this.#settle(realCost))
  }

  /** Gives all of its units back, as far as they still count, and ends it. */
  release(): Promise<Settlement> {
    return this.settle(0)
  }

  /**
   * Moves its end to `ttl` from now, unless it ends later already, and if `atEnd` is given, changes what stays charged then.
   * @throws {SluiceError} RESERVATION_ENDED where it is settled or has ended; {InputError} INVALID_DURATION, INVALID_COST.
   */
  async extend(ttl: Duration, { atEnd }: { readonly atEnd?: number } = {}): Promise<void> {
    const us = parseDuration(ttl, 'ttl') * 1000
    if (atEnd !== undefined) checkCost(atEnd, 'atEnd')
    if (!this.#reservations) return
    const change: ReservationChange = { ...this.#reserved, kind: 'extend', ttl: us, atEnd }
    const { state, end } = await this.#reservations.change(change)
    if (state !== 'open')
      throw new SluiceError(
        'RESERVATION_ENDED',
        `the reservation was ${state === 'late' ? 'over' : 'settled'}`,
      )
    this.#reserved = { ...this.#reserved, end }
  }

  /**
   * Settles the reservation at its real cost, `units`, and returns how many the store has charged or given back by that, and whether it
   * came too late. After a failure it may be settled again; `failedCost` keeps the cost. If the failed change may have been carried out
   * all the same, it may be sent again only until the instant `until`, as long as the store surely knows whether it was.
   */
  async #settle(units: number): Promise<Settlement> {
    if (!this.#reservations) return { units: 0, late: false }
    const change: ReservationChange = { ...this.#reserved, kind: 'settle', units }
    const until = Math.max(this.#reserved.end, this.#time) + SENT_AGAIN
    try {
      const { state, effect } = await this.#reservations.change(change)
      return { units: effect, late: state === 'late' }
    } catch (error) {
      if ((error as Partial<StoreError>).sent !== false) this.#unsureFailure ??= { error, until }
      this.#settling = undefined
      this.failedCost = units
      throw error
    }
  }

  /** Whether a failed settling, which may have been carried out, is so long ago that the store may keep no mark of it any more. */
  get #isTooLateToRepeat(): boolean {
    return this.#unsureFailure !== undefined && this.#time >= this.#unsureFailure.until
  }

  /** The store's time, in microseconds; 0 once the store is closed, as its clock throws then. A settlement reports that by itself. */
  get #time(): number {
    try {
      return this.#now()
    } catch {
      return 0
    }
  }
}

/**
 * The key, number, instant and end that the id of a reservation stands for.
 * @throws {InputError} INVALID_OPTION for a text that is none.
 */
export function reservedOf(key: string, id: string): Reserved {
  const numbers = String(id)
    .split('-')
    .map((number) => Number.parseInt(number, 36))
  const [number, decidedAt, end] = numbers as [number, number, number]
  if (numbers.length === 3 && numbers.every(Number.isSafeInteger)) return { key, id: number, decidedAt, end }
  throw expectedButGot(InputError, 'INVALID_OPTION', 'id must be that of a reservation', id)
}
