import { MARKED, type ReserveCall, type Reserved } from '../reservations.js'

/** A reservation that is open, or the mark that it was settled. */
export interface ReservationEntry {
  readonly id: number
  /** The instant at which it was charged. */
  readonly at: number
  /** Its units; 0 in the mark of one that was settled when nothing was known of it. */
  readonly cost: number
  /** Units that stay charged at the end. */
  atEnd: number
  /** Its end; of a mark the instant until which it is kept. */
  end: number
  /** Units that took effect when it was settled; Infinity while it is open. */
  effect: number
}

/**
 * The reservations of one key: those that are open, and marks of those that were settled. They go once an end of an open one has come,
 * or all ends have. Beside the open ones fewer than `MARKS` x `max` marks are kept; the oldest is forgotten first.
 */
export class KeyReservations {
  /** An instant before which no open reservation ends. If none is open, nothing has to be kept after this instant. */
  nextEnd = Infinity
  /** How many are open. */
  open = 0
  /** Until when a mark that was forgotten would have been kept, the latest of all. */
  #forgottenUntil = 0
  #entries: ReservationEntry[] = []

  /** Holds no reservations at first. Of any that were made before the instant `begun` nothing is known. */
  constructor(readonly begun: number) {}

  /** Reads the reservations that `numbers` has written. */
  static of([begun, nextEnd, forgottenUntil, ...rest]: readonly number[]): KeyReservations {
    const own = new KeyReservations(begun!)
    own.nextEnd = nextEnd!
    own.#forgottenUntil = forgottenUntil!
    for (let i = 0; i < rest.length; i += ENTRY) {
      const [id, at, cost, atEnd, end, high, low] = rest.slice(i, i + ENTRY) as [
        number,
        number,
        number,
        number,
        number,
        number,
        number,
      ]
      FLOAT.setUint32(0, high)
      FLOAT.setUint32(4, low)
      const effect = FLOAT.getFloat64(0)
      own.#entries.push({ id, at, cost, atEnd, end, effect })
      if (effect === Infinity) own.open++
    }
    return own
  }

  /** All reservations as whole numbers, which `of` reads. */
  get numbers(): readonly number[] {
    const entries = this.#entries.flatMap(({ id, at, cost, atEnd, end, effect }) => {
      FLOAT.setFloat64(0, effect)
      return [id, at, cost, atEnd, end, FLOAT.getUint32(0), FLOAT.getUint32(4)]
    })
    return [this.begun, this.nextEnd, this.#forgottenUntil, ...entries]
  }

  /** Makes room once there are MARKS x `max` entries: forgets marks that have ended at `now`, then the oldest ones, `max` at once. */
  makeRoom(now: number, max: number): void {
    if (this.#entries.length < MARKS * max) return
    this.#entries = this.#entries.filter(({ end }) => end > now)
    let surplus = this.#entries.length < MARKS * max ? 0 : this.#entries.length - (MARKS - 1) * max
    this.#entries = this.#entries.filter((entry) => {
      if (surplus <= 0 || isOpen(entry)) return true
      surplus--
      this.#forgottenUntil = Math.max(this.#forgottenUntil, entry.end - MARKED)
      return false
    })
  }

  /** Adds a reservation that was charged at the instant `at`, and lasts from `now`. */
  add({ id, cost, ttl, atEnd }: ReserveCall, now: number, at: number): void {
    const end = now + ttl
    this.#entries.push({ id, at, cost, atEnd, end, effect: Infinity })
    this.nextEnd = this.open++ > 0 ? Math.min(this.nextEnd, end) : end
  }

  /** The reservation of this id, or its mark. */
  find(id: number): ReservationEntry | undefined {
    return this.#entries.find((entry) => entry.id === id)
  }

  /** Whether one that is not found was settled, as its mark was forgotten: it was made at `decidedAt`, and `end` is to come. */
  wasForgotten({ decidedAt, end }: Reserved, now: number): boolean {
    return this.begun <= decidedAt && now < end && end <= this.#forgottenUntil
  }

  /**
   * Moves the end of an open reservation, never to an earlier instant: whoever asks before an end that it had, and finds it gone, may
   * take it for settled.
   */
  extend(entry: ReservationEntry, end: number, atEnd: number): void {
    entry.end = Math.max(entry.end, end)
    entry.atEnd = atEnd
  }

  /** Makes an open reservation a mark that it was settled, and that so many units took effect. */
  settled(entry: ReservationEntry, effect: number): void {
    entry.effect = effect
    entry.end += MARKED
    this.open--
  }

  /** Adds the mark of a reservation that was settled at `now`, when nothing was known of it. */
  settledLate(id: number, effect: number, now: number): void {
    const end = now + MARKED
    this.#entries.push({ id, at: now, cost: 0, atEnd: 0, end, effect })
    if (this.nextEnd === Infinity) this.nextEnd = end
  }

  /** Removes what has ended at `now`, and returns the open reservations of it, the earliest end first. */
  takeEnded(now: number): readonly ReservationEntry[] {
    const ended = this.openByEnd.filter(({ end }) => end <= now)
    this.#entries = this.#entries.filter(({ end }) => end > now)
    this.open -= ended.length
    this.nextEnd = this.openByEnd[0]?.end ?? this.latestEnd
    return ended
  }

  /** The open ones, the earliest end first. */
  get openByEnd(): readonly ReservationEntry[] {
    return this.#entries.filter(isOpen).sort((one, other) => one.end - other.end)
  }

  /** The instant from which on nothing has to be known of them. */
  get latestEnd(): number {
    return this.#entries.reduce((latest, { end }) => Math.max(latest, end), this.#forgottenUntil)
  }
}

function isOpen({ effect }: ReservationEntry): boolean {
  return effect === Infinity
}

/** Whole numbers of an entry: those of its effect, which may be below 0 or a fraction, are the halves of a float. */
export const ENTRY = 7
const FLOAT = new DataView(new ArrayBuffer(8))
/** Entries for each reservation that may be open. */
const MARKS = 4
