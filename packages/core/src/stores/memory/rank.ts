import type { Policy, View } from '../../algorithms/contract/policy.js'
import type { Table } from './table.js'

/**
 * How much would be lost with a key at `now`, under the limits it was last decided with. FULL: nothing. Below EXHAUSTED: the
 * fraction of its allowance that is spent. From EXHAUSTED on: plus one for each of up to seven denials. AWAITED: the key has
 * future bookings or is held. BANNED: it is blocked. A key whose refusals are counted for a penalty ranks as exhausted.
 */
export function rankOf(table: Table, row: number, now: number): number {
  const { cursor, barriers, bookings, lists } = table
  const barrier = barriers.of(row, now)
  if (barrier !== undefined && barrier.blockedUntil > now) return BANNED
  cursor.moveTo(row)
  if (barrier !== undefined || bookings.lastOf(row) > now) return AWAITED
  const policies = lists.at(cursor.rows.listOf(row))
  const spent = spentOf(table, policies, now)
  if (spent === 1 || table.refusals.forgottenAt(row) > now) return EXHAUSTED + cursor.rows.denialsOf(row)
  if (spent > 0 || lists.areSmallest(policies)) return spent
  // Usage recorded under a higher tier still counts when a lower tier asks.
  return spentOf(table, lists.smallest, now) > 0 ? LEAST : FULL
}

/** The instant from which the key in `row` is decided as an absent one, under the limits it was last decided with. */
export function fullAt(table: Table, row: number, now: number): number {
  const { cursor, lists } = table
  cursor.moveTo(row)
  let at = Math.max(now, table.refusals.forgottenAt(row))
  lists.at(cursor.rows.listOf(row)).forEach((policy, i) => {
    policy.algorithm.view(cursor.states[i]!, policy, now, view)
    at = Math.max(at, view.resetAt)
  })
  return at
}

/** The largest fraction that is spent under any policy, 1 if nothing is left, of the key that the cursor is on. */
function spentOf({ cursor }: Table, policies: readonly Policy[], now: number): number {
  let most = 0
  for (let i = 0; i < policies.length; i++) {
    const policy = policies[i]!
    policy.algorithm.view(cursor.states[i]!, policy, now, view)
    if (view.resetAt > now) most = Math.max(most, LEAST, 1 - view.remaining / policy.capacity)
  }
  return most
}

const view: View = { remaining: 0, resetAt: 0 }

export const FULL = 0
const LEAST = Number.MIN_VALUE
export const EXHAUSTED = 1
/** Exhausted, and denied once. */
export const DENIED = 2
const AWAITED = 9
export const BANNED = 10
