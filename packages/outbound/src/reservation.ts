import type { Policy } from '@sluice/core'
import type { Admission } from './admission.js'
import type { LaneEntry } from './lanes.js'

/** A call in the queue of its key. */
export interface QueueEntry extends LaneEntry<QueueEntry> {
  readonly cost: number
  /** Until when it waits, on the clock of `performance.now()`. */
  readonly until: number
  /** How many turns may be reserved in advance. */
  readonly prefetch: number
  readonly latenessMs: number | undefined
  /** Undefined: the limiter's own. */
  readonly policies: readonly Policy[] | undefined
  /** The turn that is reserved for it. */
  reservation: Reservation | undefined
  admit(admission: Admission): void
  refuse(error: unknown): void
  /** Its reservation is another one, or none: it is refused if its deadline has passed. */
  recheck(): void
}

/** A turn that is booked at the limiter, or about to be, after a permit of the semaphore. */
export interface Reservation {
  readonly cost: number
  readonly policies: readonly Policy[] | undefined
  readonly controller: AbortController
  /** The call that it is for; undefined once no call needs it. */
  entry: QueueEntry | undefined
  /** The turn comes by then or not at all: the deadline of the call for which it was asked, which may be another one. */
  until: number
}

export function fits({ cost, policies }: Reservation, entry: QueueEntry): boolean {
  return entry.cost === cost && entry.policies === policies
}

/** Whether a turn is reserved that comes before the call's deadline or not at all. */
export function comesInTime({ reservation, until }: QueueEntry): boolean {
  return reservation !== undefined && reservation.until <= until
}

/** Gives `entry` this reservation; the call that it was for gets the one that `entry` had. */
export function swap(entry: QueueEntry, reservation: Reservation): void {
  const [own, before] = [entry.reservation, reservation.entry]
  if (own) own.entry = before
  if (before) before.reservation = own
  entry.reservation = reservation
  reservation.entry = entry
}

/** What to ask for on behalf of the call that has the reservation by now. */
export function patience(reservation: Reservation): { maxWait: number; signal: AbortSignal } {
  const { entry, controller } = reservation
  reservation.until = entry?.until ?? 0
  const leftMs = reservation.until - performance.now()
  return { maxWait: Math.max(0, Math.floor(leftMs)), signal: controller.signal }
}
