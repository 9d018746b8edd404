import type { Ring, RingMark } from '../../algorithms/contract/state.js'
import type { Booking } from '../store.js'

/**
 * The keys with future bookings, which are charges at a later instant for calls that wait for it, by row: the number of the
 * place where a table keeps a key's state. Of each key it has the last booked instant, the version that an undo checks, and
 * whether the state was lost. Other keys have no entry, so ordinary calls pay one comparison, with `size`.
 */
export class Bookings {
  /** Keys with an entry. A field, because V8 calls a function for the size of a Map. */
  size = 0
  readonly #epochs = new Map<number, Epoch>()
  #latestVersion = 0

  /** The instant of the last booking of the key in `row`, in microseconds; 0 without future bookings. */
  lastOf(row: number): number {
    return this.size === 0 ? 0 : (this.#epochs.get(row)?.last ?? 0)
  }

  /** Whether the key in `row` has had bookings that are not forgotten yet. */
  has(row: number): boolean {
    return this.size > 0 && this.#epochs.has(row)
  }

  /**
   * Marks the state of the key in `row` as changed, by a new version, so that no earlier booking can be undone by restoring the
   * copy of what it replaced. To be called before the state is written. Keys without bookings have no version.
   */
  bumpVersion(row: number): void {
    if (this.size === 0) return
    const epoch = this.#epochs.get(row)
    if (epoch) epoch.version = ++this.#latestVersion
  }

  /** Marks the bookings of the key in `row` as lost, because its state is discarded: calls that wait for one then book again. */
  discard(row: number): void {
    const epoch = this.#epochs.get(row)
    if (epoch) epoch.isLost = true
  }

  /** Removes the entry of the key in `row`, if it has one: its bookings have passed, or its row is about to be freed. */
  forget(row: number): void {
    if (this.#epochs.delete(row)) this.size--
  }

  /**
   * Begins a booking (a charge for a call that waits) of the key in `row` for the instant `at`. Returns what `undo` needs:
   * a copy of the `cells` that the charge is about to replace, a mark of each of the `rings` (lists of instants), and the former
   * version and last instant of the key's entry. The entry gets a new version, as with every later write: while that of this
   * booking is the latest, nothing was written since, and only then may an undo restore the copy. To be called before the state
   * is written. `Ring.seal` is to be called after: from its mark until then, a ring records what is overwritten.
   */
  open(row: number, at: number, cells: Float64Array, rings: readonly Ring[]): Undo {
    let epoch = this.#epochs.get(row)
    if (!epoch) {
      this.#epochs.set(row, (epoch = { version: ++this.#latestVersion, last: 0, isLost: false }))
      this.size++
    }
    const { version: before, last } = epoch
    epoch.version = ++this.#latestVersion
    epoch.last = at
    const marks = rings.map((ring) => ring.mark())
    return { epoch, before, last, version: epoch.version, cells: cells.slice(), marks }
  }

  /**
   * Cancels a booking of the key in `row` if the key's state was not written since, and returns whether that is so; the caller
   * then restores the cells that the booking replaced. Each write gives the key a new version, and a discarded state ends its
   * `epoch`, so both must still be the booking's. The version and the last booked instant become those of before, so that the
   * booking before it can be undone next.
   */
  undo(row: number, undo: Undo): boolean {
    const epoch = this.#epochs.get(row)
    if (epoch !== undo.epoch || epoch.version !== undo.version) return false
    epoch.version = undo.before
    epoch.last = undo.last
    return true
  }

  /**
   * Removes the entries of keys whose last booked instant has passed. Checks one key between two yields, so that the caller
   * decides how much is done at a time. `now` returns the instant, in microseconds.
   */
  *purge(now: () => number): Generator<undefined> {
    for (const [row, { last }] of this.#epochs) {
      if (last <= now()) this.forget(row)
      yield
    }
  }
}

export interface MemoryBooking extends Booking {
  readonly undo: Undo
  isCancelled: boolean
}

export interface Undo {
  readonly epoch: Epoch
  readonly before: number
  readonly last: number
  readonly version: number
  readonly cells: Float64Array
  readonly marks: readonly RingMark[]
}

/** The state of a key from its first booking until all of its bookings have passed or the state is discarded. */
interface Epoch {
  /** Changes with every write. */
  version: number
  last: number
  isLost: boolean
}
