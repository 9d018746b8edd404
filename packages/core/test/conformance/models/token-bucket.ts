import type { Model, Rule, Write } from '../rule.js'
import { debt, type Debt } from './debt.js'

/**
 * Token bucket. 'greedy': missing tokens are a debt (see debt.ts). 'interval': `limit` tokens come back together at
 * every epoch multiple of W, never above full; missing tokens are counted in units. A refund puts tokens back as of
 * its instant; a charge saturates at 2 x capacity missing and never lowers what is missing.
 */
export const model: Model<Debt> = {
  ...debt,
  capacity: 'capacity',
  variants: [{ refill: 'interval' }],
  multiplied: ({ refill }) => refill !== 'interval',

  recount(writes) {
    if (writes[0]?.rule.options.refill !== 'interval') return debt.recount(writes)
    let missing: Debt = { units: 0n, since: 0n }
    for (const write of writes) missing = written(missing, write)
    return missing
  },

  room(missing, rule, instant) {
    if (rule.options.refill !== 'interval') return debt.room(missing, rule, instant)
    return rule.capacity - refilled(missing, rule, instant).units
  },

  bound(rule, from, to) {
    if (rule.options.refill !== 'interval') return debt.bound(rule, from, to)
    return rule.capacity + rule.limit * (to / rule.window - from / rule.window)
  },
}

function written(missing: Debt, { kind, at, cost, rule }: Write): Debt {
  const { units, since } = refilled(missing, rule, at)
  if (kind === 'admit') return { units: units + cost, since }
  if (kind === 'refund') return { units: units > cost ? units - cost : 0n, since }
  const charged = units + cost < 2n * rule.capacity ? units + cost : 2n * rule.capacity
  return { units: charged > units ? charged : units, since }
}

function refilled({ units, since }: Debt, { limit, window }: Rule, instant: bigint): Debt {
  if (instant < since) return { units, since }
  const back = limit * (instant / window - since / window)
  return { units: back < units ? units - back : 0n, since: instant }
}
