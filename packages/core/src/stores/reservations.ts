/*
 * The contract of reservations: charges with an end, at which the store itself gives back all but a part of them. A keyspace that
 * reserves has a state of its own, apart from that of keyspaces of the same name and shapes that do not.
 */

/**
 * How long, in microseconds, a settling without an answer may be sent again: after the end of its reservation, or after it was first
 * sent if that came later.
 */
export const SENT_AGAIN = 30_000_000

/**
 * How long, in microseconds, a store knows after its end whether a reservation was settled, and of a late settling after that. So one that
 * is sent again acts once, also where it was on its way for as long as it may be sent.
 */
export const KNOWN = 2 * SENT_AGAIN

/**
 * What the state of a keyspace that reserves is named by, behind its shapes. The number is the format of what it keeps of reservations: a
 * change of that raises it, so that no process of an earlier version reads it.
 */
export const RESERVING = 'reserving-2'

/** How a limiter reserves. */
export interface ReservationSettings {
  /** Most reservations of a key that are open at once. */
  readonly max: number
}

/** A call that reserves. Durations are microseconds. */
export interface ReserveCall {
  readonly key: string
  /** Units that are charged, as by `consume`: 1 or more. */
  readonly cost: number
  /** A number by which the reservation is known, random and whole, from 1 to 2^48. */
  readonly id: number
  readonly ttl: number
  /** Units that stay charged at the end, at most `cost`. */
  readonly atEnd: number
}

/** The reservation that a change is about. */
export interface Reserved {
  readonly key: string
  readonly id: number
  /** The instant at which it was made: state that began later has lost it. */
  readonly decidedAt: number
  /** Its end, as far as the caller knows. */
  readonly end: number
}

/**
 * A change of a reservation: `settle` corrects it to `units` and ends it, `extend` moves its end, never to an earlier instant, and what
 * stays charged then.
 */
export type ReservationChange =
  | (Reserved & { readonly kind: 'settle'; readonly units: number })
  | (Reserved & { readonly kind: 'extend'; readonly ttl: number; readonly atEnd: number | undefined })

/**
 * What became of a change. `open`: it was extended. `settled`: it is settled, by this call or an earlier one. `late`: it had ended
 * before, or its state was lost; units that it was to be settled at were charged, by this call or an earlier one.
 */
export interface ReservationEffect {
  readonly state: 'open' | 'settled' | 'late'
  /**
   * Units that took effect, below 0 if units were given back. If it was settled before, those of the first settling while a mark of it
   * is kept, until the end, and 0 after that.
   */
  readonly effect: number
  /** The end of a reservation that is open. */
  readonly end: number
}
