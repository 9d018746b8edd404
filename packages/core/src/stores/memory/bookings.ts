import type { Ring, RingMark } from '../../ring.js'
import type { Booking } from '../store.js'

/**
 * What is known of keys with places booked ahead: enough to take a place back, and to notice at its turn that the
 * state it was booked in is gone. Only such keys are in here, so ordinary calls pay one comparison.
 */
export class Bookings {
  readonly #lives = new Map<number, Life>()
  #versions = 0

  /** Notes that the state in `slot` was written. */
  touch(slot: number): void {
    if (this.#lives.size === 0) return
    const life = this.#lives.get(slot)
    if (life) life.version = ++this.#versions
  }

  /** The state in `slot` is forgotten before its time. */
  lose(slot: number): void {
    const life = this.#lives.get(slot)
    if (life) life.lost = true
  }

  forget(slot: number): void {
    this.#lives.delete(slot)
  }

  /** Begins a booking: call before the state is written, then `Undo.seal` after. */
  open(slot: number, cells: Float64Array, rings: readonly Ring[]): Undo {
    let life = this.#lives.get(slot)
    if (!life) this.#lives.set(slot, (life = { version: ++this.#versions, lost: false }))
    const before = life.version
    life.version = ++this.#versions
    return {
      life,
      before,
      version: life.version,
      cells: cells.slice(),
      marks: rings.map((ring) => ring.mark()),
    }
  }

  /** Whether nothing was written to `slot` since. If so its version goes back too: the booking before may follow. */
  undo(slot: number, undo: Undo): boolean {
    const life = this.#lives.get(slot)
    if (life !== undo.life || life.version !== undo.version) return false
    life.version = undo.before
    return true
  }

  /** Forgets the lives whose last booked instant has passed. */
  purge(isOver: (slot: number) => boolean): void {
    for (const slot of this.#lives.keys()) if (isOver(slot)) this.#lives.delete(slot)
  }
}

export interface MemoryBooking extends Booking {
  readonly undo: Undo
  isCancelled: boolean
}

export interface Undo {
  readonly life: Life
  readonly before: number
  readonly version: number
  readonly cells: Float64Array
  readonly marks: readonly RingMark[]
}

interface Life {
  /** Changes with every write. */
  version: number
  lost: boolean
}
