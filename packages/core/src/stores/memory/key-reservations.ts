import type { DatedCharge } from '../store.js'
import type { ReserveCall } from '../reservations.js'

/** A reservation that is open, or the mark that it was settled. */
export interface ReservationEntry extends DatedCharge {
  readonly id: number
  /** Units that stay charged at the end. */
  atEnd: number
  end: number
  /** Units that took effect when it was settled; undefined while it is open. */
  effect: number | undefined
}

/**
 * The reservations of one key: those that are open, and marks of those that were settled, each until its end. At most
 * `MARKS` x `max` marks are kept; the oldest is forgotten first.
 */
export class KeyReservations {
  /** The earliest end of all entries; Infinity without one. Before it there is nothing to do. */
  nextEnd = Infinity
  /** How many are open. */
  open = 0
  /** The latest end of a mark that was forgotten: until then a reservation that is not found was settled. */
  #forgottenUntil = 0
  /** The marks in the order of their settling, behind the open ones. */
  #entries: ReservationEntry[] = []

  /** None, of a key whose reservations begin at the instant `begun`: of those made before nothing is known. */
  constructor(readonly begun: number) {}

  /** Adds a reservation that was charged. */
  add({ id, ttl, atEnd }: ReserveCall, charge: DatedCharge): void {
    const end = charge.decidedAt + ttl
    this.#entries.splice(this.open++, 0, { ...charge, id, atEnd, end, effect: undefined })
    this.nextEnd = Math.min(this.nextEnd, end)
  }

  find(id: number): ReservationEntry | undefined {
    return this.#entries.find((entry) => entry.id === id)
  }

  /** Moves the end of an open reservation. */
  extend(entry: ReservationEntry, end: number, atEnd: number): void {
    entry.end = end
    entry.atEnd = atEnd
    this.#findNextEnd()
  }

  /** Makes an open reservation a mark that it was settled, and that so many units took effect. */
  settled(entry: ReservationEntry, effect: number, max: number): void {
    this.#entries.splice(this.#entries.indexOf(entry), 1)
    this.#entries.push(entry)
    entry.effect = effect
    this.open--
    if (this.#entries.length - this.open <= MARKS * max) return
    const [forgotten] = this.#entries.splice(this.open, 1)
    this.#forgottenUntil = Math.max(this.#forgottenUntil, forgotten!.end)
    this.#findNextEnd()
  }

  /** Removes what has ended at `now`, and returns the open reservations of it, the earliest end first. */
  takeEnded(now: number): readonly ReservationEntry[] {
    const ended = this.#entries.filter(({ end }) => end <= now)
    this.#entries = this.#entries.filter(({ end }) => end > now)
    const given = ended.filter(({ effect }) => effect === undefined)
    this.open -= given.length
    this.#findNextEnd()
    return given.sort(byEnd)
  }

  /** The open ones, the earliest end first. */
  get openByEnd(): readonly ReservationEntry[] {
    return this.#entries.slice(0, this.open).sort(byEnd)
  }

  /** Whether nothing more has to be known of the key's reservations at `now`. */
  isOver(now: number): boolean {
    return this.#forgottenUntil <= now && this.#entries.every(({ end }) => end <= now)
  }

  #findNextEnd(): void {
    this.nextEnd = this.#entries.reduce((least, { end }) => Math.min(least, end), Infinity)
  }
}

const byEnd = (one: ReservationEntry, other: ReservationEntry): number => one.end - other.end
/** Marks for each reservation that may be open. */
const MARKS = 4
