import { PolicyError } from '../values/errors.js'
import type { Policy } from '../algorithms/contract/policy.js'

/** What a list of policies becomes where units are served up to a while after they were booked. */
export interface Terms {
  /** What the store decides by. */
  readonly booked: readonly Policy[]
  /** What callers are told: as declared, with the capacity that is left. */
  readonly told: readonly Policy[]
  /** Most units of one call to the store. */
  readonly most: number
  /** How long units booked at `now` (store time) may be served, in microseconds. */
  life(now: number): number
}

/** A log takes a slot for each unit, and stores bound how many one call may fill. */
const LARGEST_LOG_COST = 1000

/** @throws {PolicyError} INVALID_OPTION when a policy leaves no unit to lease. */
export function termsOf(policies: readonly Policy[], ttlMs: number): Terms {
  const booked = policies.map((policy) => leased(policy, ttlMs))
  const told = policies.map((policy, i) => {
    const { capacity } = booked[i]!
    return capacity === policy.capacity ? policy : policy.with({ capacity })
  })
  const most = policies.some(({ algorithm }) => algorithm.ring) ? LARGEST_LOG_COST : Infinity
  const life = (now: number): number => {
    let left = ttlMs * 1000
    for (const policy of booked) left = Math.min(left, policy.algorithm.lease!.end(policy, now) - now)
    return left - left / CLOCKS_DIFFER_BY
  }
  return { booked, told, most, life }
}

/**
 * Two clocks may not run at the same speed: a lease ends a thousandth early. NTP and chrony change a clock's speed by at
 * most half of that.
 */
const CLOCKS_DIFFER_BY = 1000

function leased(policy: Policy, ttlMs: number): Policy {
  const { lease } = policy.algorithm
  const booked = lease?.book(policy, ttlMs)
  if (booked) return booked
  const why = lease
    ? `would keep all of its ${policy.capacity} units back: a shorter ttl or a larger capacity leaves some`
    : 'cannot be leased'
  throw new PolicyError('INVALID_OPTION', `leases with a ttl of ${ttlMs} ms: policy '${policy.name}' ${why}`)
}
