import type { Policy } from '../algorithms/contract/policy.js'
import { MOST_ENTRIES } from '../algorithms/contract/state.js'
import { PolicyError } from '../values/errors.js'

/** The policies of a limiter whose units may be served up to a while after they were booked. */
export interface LeaseTerms {
  /** The policies that the store decides by. */
  readonly booked: readonly Policy[]
  /** The policies that callers see: as declared, with the capacity that is left. */
  readonly reported: readonly Policy[]
  /** Most units of one call to the store: those of a log take an entry each. */
  readonly mostUnits: number
  /** How long units booked at `now` (store time) may be served, in microseconds. */
  lifetime(now: number): number
}

/**
 * Returns the terms of a limiter's leases: units that a process charges in the store in advance and serves from memory for up to
 * `ttlMs` milliseconds. `booked` are the policies that the store decides by. Most have a longer window or a smaller capacity than
 * the declared ones, so that units served later than they were charged still keep to those. `reported`, which callers see, are the
 * declared policies with the capacity of the booked ones. `mostUnits` bounds the units of one call to the store if a policy is a
 * log, which takes an entry per unit.
 * @throws {PolicyError} INVALID_OPTION when a policy leaves no unit to lease.
 */
export function leaseTermsOf(policies: readonly Policy[], ttlMs: number): LeaseTerms {
  const booked = policies.map((policy) => bookedPolicy(policy, ttlMs))
  const reported = policies.map((policy, i) => {
    const { capacity } = booked[i]!
    return capacity === policy.capacity ? policy : policy.with({ capacity })
  })
  const mostUnits = policies.some(({ algorithm }) => algorithm.ring) ? MOST_ENTRIES : Infinity
  /**
   * Returns for how many microseconds units that are charged at `now`, an instant of the store, may be served: the ttl, or less if a
   * policy's algorithm wants them served before (`end`). A thousandth is taken off, because the clocks of the store and of this
   * process may run at different speeds.
   */
  const lifetime = (now: number): number => {
    let left = ttlMs * 1000
    for (const policy of booked) left = Math.min(left, policy.algorithm.leasing!.end(policy, now) - now)
    return left - left / CLOCK_DRIFT
  }
  return { booked, reported, mostUnits, lifetime }
}

/**
 * A lease ends a thousandth early, because two clocks may run at different speeds. NTP and chrony change a clock's speed by
 * at most half of that.
 */
const CLOCK_DRIFT = 1000

/**
 * Returns the policy under which the store charges leases: mostly with a longer window or a smaller capacity than the given one, so
 * that units which are served up to `ttlMs` milliseconds after their charge still keep the given policy's promise.
 * @throws {PolicyError} INVALID_OPTION if the algorithm cannot be leased, the numbers become too large, or no unit is left.
 */
function bookedPolicy(policy: Policy, ttlMs: number): Policy {
  const refused = (why: string): PolicyError =>
    new PolicyError('INVALID_OPTION', `leases with a ttl of ${ttlMs} ms: policy '${policy.name}' ${why}`)
  const { leasing } = policy.algorithm
  if (!leasing) throw refused('cannot be leased')
  let booked: Policy | undefined
  try {
    booked = leasing.book(policy, ttlMs)
  } catch (error) {
    throw refused(`is booked under a longer window: ${(error as PolicyError).message}`)
  }
  if (booked) return booked
  const advice = 'a shorter ttl or a larger capacity leaves some'
  throw refused(`would keep all of its ${policy.capacity} units back: ${advice}`)
}
