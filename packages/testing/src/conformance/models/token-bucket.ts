import { latest } from '../instant.js'
import type { Model, Rule, Write } from '../rule.js'
import { debt, type Debt, leastFrom0 } from './debt.js'

/**
 * Token bucket. 'greedy': missing tokens are a debt (see debt.ts). 'interval': `limit` tokens come back together at
 * each multiple of W since the Unix epoch, never above full; missing tokens are counted in units. A refund puts tokens back as of
 * its instant; a charge saturates at 2 x capacity missing and never lowers what is missing. A release puts back what the
 * refills since its charge cannot have put back: the cost less the fastest limit so far for each of them.
 */
export const model: Model<Debt> = {
  ...debt,
  capacity: 'capacity',
  variants: [{ refill: 'interval' }],
  multiplied: ({ refill }) => refill !== 'interval',

  /**
   * The tokens that are missing after all writes to a key, counted one after the other. With interval refill they are whole
   * units; with gradual refill ('greedy') they are a debt in units x ticks, which the model of debts counts. All writes to a key
   * have one kind of refill, which is part of its shape.
   */
  recount(writes) {
    if (writes[0]?.rule.options.refill !== 'interval') return debt.recount(writes)
    let missing: Debt = { units: 0n, since: 0n, fastest: 0n }
    for (const write of writes) missing = written(missing, write)
    return missing
  },

  /**
   * How many tokens there are at an instant, in microseconds: the capacity less those that are missing after the refills until
   * then.
   */
  room(missing, rule, instant) {
    if (rule.options.refill !== 'interval') return debt.room(missing, rule, instant)
    return rule.capacity - refilled(missing, rule, instant).units
  },

  /**
   * How many tokens are missing at an instant: what a later refund or release could put back. No earlier instant than that of the
   * last write (`since`) is asked about, which may be a booking ahead of now. With gradual refill it is a debt in units x ticks.
   */
  kept(missing, rule, instant) {
    if (rule.options.refill !== 'interval') return debt.kept(missing, rule, instant)
    return refilled(missing, rule, latest(instant, missing.since)).units
  },

  parts: (rule) => (rule.options.refill === 'interval' ? 1n : rule.windowTicks),

  /**
   * The most units that may be admitted from one instant to another, both included, in microseconds: what the algorithm promises.
   * With interval refill: a full bucket, and `limit` for each multiple of the window (a refill) between the two instants.
   */
  bound(rule, from, to) {
    if (rule.options.refill !== 'interval') return debt.bound(rule, from, to)
    return rule.capacity + rule.limit * (to / rule.window - from / rule.window)
  },

  leased(options, ttl) {
    return options.refill === 'interval' ? options : debt.leased.call(this, options, ttl)
  },
}

/**
 * The missing tokens after a write under interval refill: what the refills until its instant have left of them, and what the
 * write takes or puts back. A charge stops at twice the capacity, without lowering what is missing. A release puts back at most
 * what is surely still missing of its charge: its cost less `fastest`, the largest limit so far, for each refill since.
 */
function written(missing: Debt, { kind, at, cost, charge, rule }: Write): Debt {
  const { units, since } = refilled(missing, rule, at)
  const fastest = latest(missing.fastest, rule.limit)
  if (kind === 'admit') return { units: units + cost, since, fastest }
  if (kind === 'refund') return { units: units > cost ? units - cost : 0n, since, fastest }
  if (kind === 'release') {
    const refills = since / rule.window - charge!.at / rule.window
    return { units: units - leastFrom0(cost, charge!.cost - refills * fastest, units), since, fastest }
  }
  const charged = units + cost < 2n * rule.capacity ? units + cost : 2n * rule.capacity
  return { units: charged > units ? charged : units, since, fastest }
}

/**
 * The tokens that are missing at an instant under interval refill, and the instant as of which that is counted. `limit` tokens
 * come back at each multiple of the window since `since`, down to none missing. Before `since`, the instant of a booking, nothing
 * changes.
 */
function refilled(
  { units, since }: Debt,
  { limit, window }: Rule,
  instant: bigint,
): Pick<Debt, 'units' | 'since'> {
  if (instant < since) return { units, since }
  const back = limit * (instant / window - since / window)
  return { units: back < units ? units - back : 0n, since: instant }
}
