import { KNOWN, type ReserveCall, type Reserved } from '../reservations.js'

/** A reservation that is open, or a mark: that it was settled, that it has ended unsettled, or that it was settled late. */
export interface ReservationEntry {
  readonly id: number
  /** The instant at which it was charged. */
  readonly at: number
  /** Its units; 0 in the mark that it was settled late. */
  cost: number
  /** Units that stay charged at the end. */
  atEnd: number
  /** Its end; of one that was settled late the instant until which the mark is kept. */
  end: number
  /** Units that took effect when it was settled; OPEN before that, and ENDED if it has ended unsettled. */
  effect: number
}

/**
 * The reservations of one key: those that are open, and marks. The mark of one that was settled goes at its end: one that is not found
 * then was settled, as one that has ended unsettled leaves a mark too. Beside the open ones fewer than `MARKS` x `max` marks are kept;
 * the oldest is forgotten first.
 */
export class KeyReservations {
  /** An instant before which no open reservation ends; if none is open, it is that at which marks go, or all that is known. */
  nextEnd = Infinity
  /** How many are open. */
  openCount = 0
  /** The latest end of one that was settled, and of one that has ended unsettled, whose marks are gone. */
  #settledUntil = 0
  #unsettledUntil = 0
  #entries: ReservationEntry[] = []

  /** Holds no reservations at first. Of any that were made before the instant `begun` nothing is known. */
  constructor(readonly begun: number) {}

  /** Makes the reservations of a key out of the whole numbers that `numbers` has written. */
  static of([begun, nextEnd, settledUntil, unsettledUntil, ...rest]: readonly number[]): KeyReservations {
    const own = new KeyReservations(begun!)
    own.nextEnd = nextEnd!
    own.#settledUntil = settledUntil!
    own.#unsettledUntil = unsettledUntil!
    for (let i = 0; i < rest.length; i += ENTRY) {
      const [id, at, cost, atEnd, end, high, low] = rest.slice(i, i + ENTRY)
      const effect = fromHalves(high!, low!)
      own.#entries.push({ id: id!, at: at!, cost: cost!, atEnd: atEnd!, end: end!, effect })
      if (effect === OPEN) own.openCount++
    }
    return own
  }

  /**
   * All reservations as whole numbers, which `of` reads: four of the key, then seven of each reservation. Its effect, which may be a
   * fraction, becomes two numbers, the high and the low half of a double.
   */
  get numbers(): readonly number[] {
    const entries = this.#entries.flatMap(({ id, at, cost, atEnd, end, effect }) => {
      const [high, low] = halvesOf(effect)
      return [id, at, cost, atEnd, end, high, low]
    })
    return [this.begun, this.nextEnd, this.#settledUntil, this.#unsettledUntil, ...entries]
  }

  /**
   * Adds an open reservation, which was charged at the instant `at` and ends `ttl` microseconds after `now`. At its end all its
   * units but `atEnd` are to be given back.
   */
  add({ id, cost, ttl, atEnd }: ReserveCall, now: number, at: number): void {
    const end = now + ttl
    this.#entries.push({ id, at, cost, atEnd, end, effect: OPEN })
    this.nextEnd = Math.min(this.nextEnd, end)
    this.openCount++
  }

  /** The reservation of this id, or a mark of it. */
  find(id: number): ReservationEntry | undefined {
    return this.#entries.find((entry) => entry.id === id)
  }

  /** Whether one that is not found was settled, and its mark is gone. If not, it has ended unsettled, or the state is not that which knew it. */
  wasSettled({ decidedAt, end }: Reserved): boolean {
    return this.begun <= decidedAt && this.#unsettledUntil < end && end <= this.#settledUntil
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
    this.openCount--
  }

  /**
   * Leaves a mark that the reservation `id` was settled after its end: at `now`, when `effect` units took effect. By the mark a
   * second settlement changes nothing. It is kept for the time KNOWN, and replaces the mark that the reservation had ended, if any.
   */
  settledLate(id: number, effect: number, now: number): void {
    const late = { cost: 0, atEnd: 0, end: now + KNOWN, effect }
    const ended = this.find(id)
    if (ended) Object.assign(ended, late)
    else this.#entries.push({ id, at: now, ...late })
    if (this.nextEnd === Infinity) this.nextEnd = late.end
  }

  /** Whether some have ended at `now`, or there are so many marks that the oldest have to go before one more is made. */
  isDue(now: number, max: number): boolean {
    return this.nextEnd <= now || this.#entries.length >= MARKS * max
  }

  /**
   * Marks the open reservations whose end has come by `now` as ended, and returns them, the earliest end first. Forgets marks that
   * are not needed any more. `nextEnd` becomes the next instant at which this has something to do.
   */
  takeEnded(now: number, max: number): readonly ReservationEntry[] {
    const ended = this.openByEnd.filter(({ end }) => end <= now)
    for (const entry of ended) entry.effect = ENDED
    this.openCount -= ended.length
    this.#forgetMarks(now, max)
    if (this.nextEnd <= now) {
      const nextOpen = this.openByEnd[0]
      // A mark of a reservation that ended unsettled is needed only to tell it from settled ones.
      this.nextEnd = nextOpen?.end ?? (this.#latestEnd(isSettled) || this.#settledUntil + KNOWN)
    }
    return ended
  }

  /**
   * Forgets the marks, which are the entries that are not open, whose time is over, and the `max` oldest of the others if there are
   * too many. Of the forgotten the latest end is noted: of those that had ended unsettled, and of those that were settled in time.
   */
  #forgetMarks(now: number, max: number): void {
    const lasts = (entry: ReservationEntry): boolean => forgottenAt(entry) > now
    const lasting = this.#entries.filter(lasts).length
    let surplus = lasting < MARKS * max ? 0 : lasting - (MARKS - 1) * max
    this.#entries = this.#entries.filter((entry) => {
      if (lasts(entry) && (isOpen(entry) || surplus-- <= 0)) return true
      const { cost, end, effect } = entry
      if (effect === ENDED) this.#unsettledUntil = Math.max(this.#unsettledUntil, end)
      else if (cost > 0) this.#settledUntil = Math.max(this.#settledUntil, end)
      return false
    })
  }

  /** The open ones, the earliest end first. */
  get openByEnd(): readonly ReservationEntry[] {
    return this.#entries.filter(isOpen).sort((one, other) => one.end - other.end)
  }

  /** The latest end of an open one; 0 if there is none. */
  get openUntil(): number {
    return this.#latestEnd((effect) => effect === OPEN)
  }

  /** The instant from which on nothing has to be known of them. */
  get knownUntil(): number {
    return Math.max(this.openUntil, Math.max(this.#latestEnd(isSettled), this.#settledUntil) + KNOWN)
  }

  /**
   * Returns the latest end of the entries whose effect `matches`; 0 if there is none. An effect is the units that took effect when
   * the reservation was settled, or OPEN or ENDED if it was not.
   */
  #latestEnd(matches: (effect: number) => boolean): number {
    return this.#entries.reduce(
      (latest, { end, effect }) => (matches(effect) && end > latest ? end : latest),
      0,
    )
  }
}

export function isOpen({ effect }: ReservationEntry): boolean {
  return effect === OPEN
}

/** Whether the effect of an entry is that of a reservation that was settled: neither OPEN nor ENDED. */
function isSettled(effect: number): boolean {
  return Number.isFinite(effect)
}

function halvesOf(number: number): readonly [high: number, low: number] {
  FLOAT.setFloat64(0, number)
  return [FLOAT.getUint32(0), FLOAT.getUint32(4)]
}

function fromHalves(high: number, low: number): number {
  FLOAT.setUint32(0, high)
  FLOAT.setUint32(4, low)
  return FLOAT.getFloat64(0)
}

/** The instant from which on a mark is not kept. */
function forgottenAt({ end, effect }: ReservationEntry): number {
  return effect === ENDED ? end + KNOWN : end
}

const OPEN = Infinity
export const ENDED = -Infinity

/** Whole numbers before those of the entries. */
export const HEAD = 4
/** Whole numbers of an entry: those of its effect, which may be below 0 or a fraction, are the halves of a float. */
export const ENTRY = 7
const FLOAT = new DataView(new ArrayBuffer(8))
/** Entries for each reservation that may be open. */
const MARKS = 4
