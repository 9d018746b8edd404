import type { Ring, RingMark } from '../../algorithms/contract/state.js'
import type { Booking } from '../store.js'

/**
 * The keys with future bookings: the last booked instant, what is needed to undo a booking, and whether its state was lost
 * before its turn. Other keys have no entry, so ordinary calls pay one comparison.
 */
export class Bookings {
  /** Keys with an entry. A field, because V8 calls a function for the size of a Map. */
  size = 0
  readonly #lives = new Map<number, Life>()
  #versions = 0
  /** The position of `purge`. */
  #hand: Iterator<[number, Life]> | undefined

  /** The last booked instant of the key in `row`; 0 without future bookings. */
  lastOf(row: number): number {
    return this.size === 0 ? 0 : (this.#lives.get(row)?.last ?? 0)
  }

  /** Whether the key in `row` has had bookings that are not forgotten yet. */
  has(row: number): boolean {
    return this.size > 0 && this.#lives.has(row)
  }

  /** To be called before the state in `row` is written. */
  touch(row: number): void {
    if (this.size === 0) return
    const life = this.#lives.get(row)
    if (life) life.version = ++this.#versions
  }

  /** Marks the bookings in `row` as lost, because its state is discarded. */
  lose(row: number): void {
    const life = this.#lives.get(row)
    if (life) life.lost = true
  }

  forget(row: number): void {
    if (this.#lives.delete(row)) this.size--
  }

  /** Begins a booking for the instant `at`. To be called before the state is written; `Ring.seal` is to be called after. */
  open(row: number, at: number, cells: Float64Array, rings: readonly Ring[]): Undo {
    let life = this.#lives.get(row)
    if (!life) {
      this.#lives.set(row, (life = { version: ++this.#versions, last: 0, lost: false }))
      this.size++
    }
    const { version: before, last } = life
    life.version = ++this.#versions
    life.last = at
    return {
      life,
      before,
      last,
      version: life.version,
      cells: cells.slice(),
      marks: rings.map((ring) => ring.mark()),
    }
  }

  /**
   * Undoes a booking if nothing was written since, and returns whether it did. The version goes back too, so that the
   * booking before it can be undone next.
   */
  undo(row: number, undo: Undo): boolean {
    const life = this.#lives.get(row)
    if (life !== undo.life || life.version !== undo.version) return false
    life.version = undo.before
    life.last = undo.last
    return true
  }

  /**
   * Checks the next `count` keys and forgets those whose last booking has passed. Returns the number of keys checked: fewer
   * than `count` at the end of a round.
   */
  purge(count: number, now: number): number {
    if (this.size === 0) return 0
    this.#hand ??= this.#lives.entries()
    for (let seen = 0; seen < count; seen++) {
      const next = this.#hand.next()
      if (next.done) {
        this.#hand = undefined
        return seen
      }
      const [row, { last }] = next.value
      if (last <= now) this.forget(row)
    }
    return count
  }
}

export interface MemoryBooking extends Booking {
  readonly undo: Undo
  isCancelled: boolean
}

export interface Undo {
  readonly life: Life
  readonly before: number
  readonly last: number
  readonly version: number
  readonly cells: Float64Array
  readonly marks: readonly RingMark[]
}

interface Life {
  /** Changes with every write. */
  version: number
  last: number
  lost: boolean
}
