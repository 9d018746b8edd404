import { latest } from '../instant.js'
import type { Model, Rule, Write } from '../rule.js'

/**
 * What token bucket, leaky bucket and GCRA have in common: every unit is a debt of one window, counted in units x
 * ticks, that is paid off at `limit` a tick. A cost fits while debt <= (capacity - cost) x window. Elapsed time is
 * rounded down to ticks and the remainder kept: the reference instant moves by whole ticks, and to the instant
 * itself when nothing is left to pay, or so little that it ends inside the tick. A refund lowers the debt, as it stands at that instant, to no less than 0;
 * with a place booked ahead it lowers the debt as it will stand then. A charge saturates at a debt of
 * 2 x capacity x window and never lowers what is there. A changed limit pays off what is already owed.
 *
 * A release gives back what is surely still owed of its charge: the cost less what the fastest limit so far can have paid
 * off since, each tick that was begun counted whole. With a place booked ahead that is counted until its instant.
 */
export const debt = {
  refunds: 'newest',
  multiplied: () => true,

  recount(writes: readonly Write[]): Debt {
    let owed: Debt = { units: 0n, since: 0n, fastest: 0n }
    for (const { kind, at, cost, charge, rule } of writes) {
      const instant = kind === 'release' ? latest(at, owed.since) : at
      const { units, since } = paid(owed, rule, instant)
      const fastest = latest(owed.fastest, rule.limit)
      const change = cost * rule.windowTicks
      if (kind === 'admit') owed = { units: units + change, since, fastest }
      else if (kind === 'refund') owed = { units: units > change ? units - change : 0n, since, fastest }
      else if (kind === 'release') {
        const ticks = (instant - charge!.at + rule.tick - 1n) / rule.tick
        const left = charge!.cost * rule.windowTicks - ticks * fastest
        owed = { units: units - least(change, left, units), since, fastest }
      } else {
        const most = 2n * rule.capacity * rule.windowTicks
        const charged = units + change < most ? units + change : most
        owed = { units: charged > units ? charged : units, since, fastest }
      }
    }
    return owed
  },

  kept: (owed: Debt, rule: Rule, instant: bigint) => paid(owed, rule, latest(instant, owed.since)).units,

  parts: (rule: Rule) => rule.windowTicks,

  room(owed: Debt, rule: Rule, instant: bigint): bigint {
    const free = rule.capacity * rule.windowTicks - paid(owed, rule, instant).units
    return free >= 0n ? free / rule.windowTicks : -1n
  },

  bound: (rule: Rule, from: bigint, to: bigint) => rule.capacity + (rule.limit * (to - from)) / rule.window,
} as const satisfies Model<Debt>

export interface Debt {
  readonly units: bigint
  readonly since: bigint
  /** The largest limit that has paid any of it off. */
  readonly fastest: bigint
}

/** The smallest of these, and at least 0. */
export function least(...numbers: readonly bigint[]): bigint {
  const smallest = numbers.reduce((a, b) => (b < a ? b : a))
  return smallest > 0n ? smallest : 0n
}

function paid(owed: Debt, { limit, tick }: Rule, instant: bigint): Omit<Debt, 'fastest'> {
  const { units, since } = owed
  if (instant < since) return { units, since }
  const ticks = (instant - since) / tick
  if (ticks * limit >= units) return { units: 0n, since: instant }
  const left = units - ticks * limit
  return { units: left, since: left <= limit ? instant : since + ticks * tick }
}
