import type { Policy } from '@sluice/core'
import type { Kind, Step } from './traffic.js'

/** One call with all its numbers, to be made on the product and on the model alike. */
export interface Operation {
  readonly kind: Kind
  readonly now: number
  readonly tier: number
  readonly cost: number
  readonly maxWait: number
  /** Which booking of those made so far; -1 when there is none. */
  readonly booking: number
  /** Which of the charges that gave nothing back yet; -1 when there is none. */
  readonly charge: number
}

/** Numbers of the last answer, how many places were booked since the start, and what was charged. */
export interface Known {
  readonly at: number
  readonly remaining: number
  readonly resetAt: number
  readonly bookings: number
  /** Costs of the calls that passed and gave nothing back yet. */
  readonly charges: readonly number[]
}

const MOST_COST = 2 ** 31

/** Gives a step its numbers. Time never moves back, costs stay within 0 (or 1 where nothing takes 0) and 2^31. */
export function operationOf(
  step: Step,
  now: number,
  policies: readonly Policy[],
  known: Known,
  mostCost = MOST_COST,
): Operation {
  const policy = policies[step.pick % policies.length]!
  const moved = Math.max(now, moveTo(step, now, policy, known))
  const { length } = known.charges
  const charge = length === 0 ? -1 : Math.max(0, length - 1 - step.pick * Math.max(1, step.parts >> 1))
  const most = step.kind === 'release' ? (known.charges[charge] ?? 1) : mostCost
  return {
    kind: step.kind,
    now: moved,
    tier: step.tier,
    cost: Math.min(Math.max(costOf(step, policies, known), lowestCost(step.kind)), most),
    maxWait: Math.max(lowestWait(step.kind), waitOf(step, moved, policy, known)),
    booking: known.bookings === 0 ? -1 : Math.max(0, known.bookings - 1 - step.pick),
    charge,
  }
}

/** The instant that a step moves the clock to: near a boundary of the algorithm, or near one that the last answer named. */
function moveTo({ to, parts, off }: Step, now: number, { window, buckets }: Policy, known: Known): number {
  const bucket = Math.ceil(window / buckets)
  switch (to) {
    case 'stay':
      return now + (parts > 10 ? 1 : 0)
    case 'part':
      return now + Math.floor((window * parts) / 24)
    case 'bucket':
      return (Math.floor(now / bucket) + Math.ceil(parts / 3)) * bucket + off
    case 'window':
      return (Math.floor(now / window) + Math.ceil(parts / 6)) * window + off
    case 'at':
      return known.at === Infinity ? now : known.at + off
    case 'reset':
      return known.resetAt + off
    case 'idle':
      return now + Math.floor((window * parts) / 4) + off
  }
}

/** The cost of a step: a given one, or one near what remains or near the capacity. */
function costOf({ of, units }: Step, policies: readonly Policy[], known: Known): number {
  const capacity = Math.min(...policies.map((policy) => policy.capacity))
  switch (of) {
    case 'nothing':
      return units
    case 'remaining':
      return known.remaining + (units > 2 ? 0 : units)
    case 'capacity':
      return capacity + (units > 2 ? 0 : units)
    case 'half':
      return Math.ceil(capacity / 2)
  }
}

/** The store is never asked to book, refund or charge nothing: its callers see to that. */
function lowestCost(kind: Kind): number {
  return kind === 'consume' || kind === 'peek' ? 0 : 1
}

/** The least time in microseconds that an operation may have: 1 for a block or a hold, which cannot last no time, else 0. */
function lowestWait(kind: Kind): number {
  return kind === 'block' || kind === 'hold' ? 1 : 0
}

/** The longest wait of a step: near the wait that the last answer named, or a part of the window. */
function waitOf({ wait, parts, waitOff }: Step, now: number, { window }: Policy, known: Known): number {
  if (wait === 'known' && known.at !== Infinity) return known.at - now + waitOff
  return Math.floor((window * parts) / 6)
}
