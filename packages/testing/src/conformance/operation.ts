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

/**
 * Turns a drawn step into a call with numbers, for the store and the model alike. `now` is the clock, in microseconds; `known`
 * holds the last answer and the charges so far. From these, and from the windows of one of the policies, costs and instants are
 * chosen so that they lie at the edges. Time never moves back. A cost is at least 1, or 0 for calls that take it, and at most
 * `mostCost`; that of a release is at most its charge. A booking and a charge are chosen by the drawn `step.pick`, counted back from
 * the newest, charges in strides so that old ones are reached too.
 */
export function operationOf(
  step: Step,
  now: number,
  policies: readonly Policy[],
  known: Known,
  mostCost = MOST_COST,
): Operation {
  const policy = policies[step.pick % policies.length]!
  const moved = Math.max(now, moveTo(step, now, policy, known))
  const stride = Math.max(1, step.parts >> 1) // 1 to 6
  const charge = indexFromEnd(known.charges.length, step.pick * stride)
  const most = step.kind === 'release' ? (known.charges[charge] ?? 1) : mostCost
  return {
    kind: step.kind,
    now: moved,
    tier: step.tier,
    cost: Math.min(Math.max(costOf(step, policies, known), lowestCost(step.kind)), most),
    maxWait: Math.max(lowestWait(step.kind), waitOf(step, moved, policy, known)),
    booking: indexFromEnd(known.bookings, step.pick),
    charge,
  }
}

/** The index of the entry that is `back` before the last of `length` entries, or else of the first; -1 without an entry. */
function indexFromEnd(length: number, back: number): number {
  return length === 0 ? -1 : Math.max(0, length - 1 - back)
}

/**
 * The instant, in microseconds, that a step moves the clock to: nowhere or a microsecond on ('stay'), a part of a window ahead,
 * the beginning of a later bucket or window, or what the last answer announced: the instant `at` at which its cost passes, or
 * 'reset', at which the key is full. `off` is a microsecond before or after. 'idle' lets up to three windows pass. The result may
 * lie before `now`: the caller then stays at `now`.
 */
function moveTo({ to, parts, off }: Step, now: number, { window, buckets }: Policy, known: Known): number {
  const bucket = Math.ceil(window / buckets)
  const movesOn = parts > 10 // in 2 of 12 draws
  switch (to) {
    case 'stay':
      return now + (movesOn ? 1 : 0)
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

/**
 * The units that a step asks for: `units` by themselves, -1 to 4, or what the last answer left, or the smallest capacity of the
 * policies, or half of that. `units` up to 2 are added to what was left or to the capacity, so that costs fall on both sides of
 * it; 3 and 4 leave it exact.
 */
function costOf({ of, units }: Step, policies: readonly Policy[], known: Known): number {
  const capacity = Math.min(...policies.map((policy) => policy.capacity))
  const beside = units > 2 ? 0 : units
  switch (of) {
    case 'nothing':
      return units
    case 'remaining':
      return known.remaining + beside
    case 'capacity':
      return capacity + beside
    case 'half':
      return Math.ceil(capacity / 2)
  }
}

/**
 * The smallest cost of an operation: 0 for `consume` and `peek`, which then only read, otherwise 1. The store is asked for no
 * less.
 */
function lowestCost(kind: Kind): number {
  return kind === 'consume' || kind === 'peek' ? 0 : 1
}

/** The least time in microseconds that an operation may have: 1 for a block or a hold, which cannot last no time, else 0. */
function lowestWait(kind: Kind): number {
  return kind === 'block' || kind === 'hold' ? 1 : 0
}

/**
 * How long a booking of this step may wait, or how long its block or hold lasts, in microseconds. For 'known' it is the time
 * until the instant `at`, at which the cost of the last answer passes. `waitOff` makes that a microsecond more or less, or leaves
 * it, so that bookings are just made or just refused. Otherwise, and where that cost never passes, it is `parts` sixths of a
 * window.
 */
function waitOf({ wait, parts, waitOff }: Step, now: number, { window }: Policy, known: Known): number {
  if (wait === 'known' && known.at !== Infinity) return known.at - now + waitOff
  return Math.floor((window * parts) / 6)
}
