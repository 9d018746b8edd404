import type { Policy, View } from '../../algorithms/contract/policy.js'
import type { Table } from './table.js'

/**
 * How much a key says that an absent one would not, at `now` and under the limits it was last decided with. FULL: nothing.
 * Below EXHAUSTED: the part of its allowance that is spent. Then EXHAUSTED, one more for each of up to seven denials;
 * AWAITED with places ahead or on hold; BANNED.
 */
export function rankOf(table: Table, slot: number, now: number): number {
  const { cursor, barriers, bookings, tiers } = table
  if (barriers.blockedUntil(slot) > now) return BANNED
  cursor.moveTo(slot)
  if (barriers.heldUntil(slot) > now || bookings.lastOf(slot) > now) return AWAITED
  const policies = tiers.list(cursor.slots.tierOf(slot))
  const spent = spentOf(table, policies, now)
  if (spent === 1) return EXHAUSTED + cursor.slots.denialsOf(slot)
  if (spent > 0 || tiers.isSlowest(policies)) return spent
  // What a call under a faster tier consumed still counts when a slower one asks.
  return spentOf(table, tiers.slowest, now) > 0 ? LEAST : FULL
}

/** The instant at which the key in `slot` is full again under the limits it was last decided with. */
export function fullAt(table: Table, slot: number, now: number): number {
  const { cursor, tiers } = table
  cursor.moveTo(slot)
  let at = now
  tiers.list(cursor.slots.tierOf(slot)).forEach((policy, i) => {
    policy.algorithm.view(cursor.states[i]!, policy, now, view)
    at = Math.max(at, view.resetAt)
  })
  return at
}

/** The largest part that is spent under any of the policies; 1 where nothing is left. The cursor is on the key. */
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
