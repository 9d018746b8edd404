import type { Policy } from '../../algorithms/contract/policy.js'
import type { Booking, Correction, DatedCharge } from '../store.js'
import type { Barriers } from './barriers.js'
import type { Bookings, MemoryBooking } from './bookings.js'
import type { Cursor } from './cursor.js'
import type { PolicyList } from './policy-lists.js'

/** The table whose keys are corrected. */
export interface CorrectedTable {
  readonly cursor: Cursor
  readonly barriers: Barriers
  readonly bookings: Bookings
  /** The row of `key`, allocated if it has none, with the cursor on it. */
  rowFor(key: string, now: number, list: PolicyList): number
  /** Discards the state in a row. */
  lose(row: number): void
}

/** Applies a correction at `now`. Returns the units that took effect. */
export function correct(table: CorrectedTable, list: PolicyList, change: Correction, now: number): number {
  const { policies } = list
  const { key } = change
  switch (change.kind) {
    case 'refund':
      return refund(table, policies, key, now, change.cost)
    case 'charge':
      return charge(table, list, key, now, change.cost)
    case 'release':
      return release(table, policies, key, now, change.charge, change.units)
    case 'block':
      table.barriers.block(table.rowFor(key, now, list), now + change.duration)
      return 0
    case 'hold':
      table.barriers.hold(table.rowFor(key, now, list), now + change.duration)
      return 0
    case 'reset': {
      const row = table.cursor.rows.find(key)
      if (row !== 0) table.lose(row)
      return 0
    }
  }
}

/** Gives a booking back at `now`. Returns whether the key is as if the booking had never been made. */
export function cancel(
  table: CorrectedTable,
  policies: readonly Policy[],
  booking: Booking,
  now: number,
): boolean {
  const booked = booking as MemoryBooking
  if (booked.isCancelled) return false
  booked.isCancelled = true
  const row = table.cursor.rows.find(booked.key)
  if (table.bookings.undo(row, booked.undo)) {
    table.cursor.moveTo(row)
    table.cursor.restore(booked.undo)
    return true
  }
  if (!booked.undo.life.lost) release(table, policies, booked.key, now, booked, booked.cost)
  return false
}

function refund(
  { cursor, bookings }: CorrectedTable,
  policies: readonly Policy[],
  key: string,
  now: number,
  cost: number,
): number {
  const row = cursor.rows.find(key)
  if (row === 0) return 0
  cursor.moveTo(row)
  bookings.touch(row)
  return cursor.admit(policies, now, -cost)
}

function charge(table: CorrectedTable, list: PolicyList, key: string, now: number, cost: number): number {
  const { cursor, bookings } = table
  const row = table.rowFor(key, now, list)
  bookings.touch(row)
  return cursor.admit(list.policies, Math.max(now, bookings.lastOf(row)), cost)
}

/** State that began after the charge was decided holds only the units of other charges. */
function release(
  { cursor, bookings }: CorrectedTable,
  policies: readonly Policy[],
  key: string,
  now: number,
  charged: DatedCharge,
  units: number,
): number {
  const row = cursor.rows.find(key)
  if (row === 0) return 0
  cursor.moveTo(row)
  if (charged.decidedAt < cursor.born) return 0
  bookings.touch(row)
  return cursor.release(policies, Math.max(now, bookings.lastOf(row)), charged, units)
}
