import { latest } from '../instant.js'
import type { Model, Options, Rule, Write } from '../rule.js'

/**
 * Token bucket, leaky bucket and GCRA have this in common: every unit is a debt of one window, counted in units x
 * ticks, that is paid off at `limit` a tick. A cost fits while debt <= (capacity - cost) x window. Elapsed time is
 * rounded down to ticks and the remainder kept: the reference instant moves by whole ticks, and to the instant
 * itself when nothing is left to pay, or so little that it ends inside the tick. A refund lowers the debt, as it stands
 * at that instant, to no less than 0; with a place booked ahead it lowers the debt as it will stand then. A charge
 * saturates at a debt of 2 x capacity x window and never lowers what is there. A changed limit pays off what is
 * already owed.
 *
 * A release gives back what is surely still owed of its charge: the cost less what the fastest limit so far can have paid
 * off since, each tick that was begun counted whole. With a place booked ahead that is counted until its instant.
 *
 * With slots a release takes the smaller of that and of the debt that all charges since nothing was owed leave, each of
 * them as if it had come at the end of its slot of 1/n of two windows, and the released units as if never charged. Only
 * charges in the newest n slots are taken out, and only where a single limit has paid off all of them.
 */
export const debt = {
  refunds: 'newest',
  multiplied: () => true,

  /**
   * The debt that all writes to a key leave, counted from the first write on. `fastest` is the largest limit of these writes, 0
   * before the first: at that pace a release supposes its charge to have drained. `bySlot` holds the units of charges once more,
   * by the slots of time in which they came. It is undefined without the option `slots`, and before the first charge.
   */
  recount(writes: readonly Write[]): Debt {
    let owed: Debt = { units: 0n, since: 0n, fastest: 0n, bySlot: undefined }
    for (const write of writes) owed = written(owed, write)
    return owed
  },

  releasesLater: ({ slots }: Partial<Options>) => slots !== undefined,

  kept: (owed: Debt, rule: Rule, instant: bigint) =>
    drainedUntil(owed, rule, latest(instant, owed.since)).units,

  parts: (rule: Rule) => rule.windowTicks,

  /**
   * How many whole units fit at an instant, in microseconds: the capacity less the debt that is left then, a unit of which weighs
   * `windowTicks`, rounded down. Below 0 where more than the capacity is owed.
   */
  room(owed: Debt, rule: Rule, instant: bigint): bigint {
    const free = rule.capacity * rule.windowTicks - drainedUntil(owed, rule, instant).units
    return (free >= 0n ? free : free - rule.windowTicks + 1n) / rule.windowTicks
  },

  bound: (rule: Rule, from: bigint, to: bigint) => rule.capacity + (rule.limit * (to - from)) / rule.window,

  /** The options under which leases are charged: the capacity less what drains in `ttl`; undefined if nothing is left. */
  leased(this: Model<Debt>, options: Options, ttl: number): Options | undefined {
    const name = this.capacity!
    const left = (options[name] ?? options.limit) - Math.ceil((options.limit * ttl) / options.window)
    return left < 1 ? undefined : { ...options, [name]: left }
  },
} as const satisfies Model<Debt>

export interface Debt {
  /** What is owed at `since`, in units x ticks. */
  readonly units: bigint
  readonly since: bigint
  /** The largest limit that has paid any of it off. */
  readonly fastest: bigint
  /** With slots: what was charged since nothing was owed, as long as no other limit has paid any of it off. */
  readonly bySlot?: UnitsBySlot | undefined
}

interface UnitsBySlot {
  /** The instant of the first charge, when nothing was owed. */
  readonly begun: bigint
  /** The number of the newest slot that was charged. */
  readonly newest: bigint
  /** Units by the number of their slot, all of them. */
  readonly units: ReadonlyMap<bigint, bigint>
}

/**
 * The debt after one write, in units x ticks: a unit weighs `windowTicks`, so that a tick drains `limit`, a whole number. First
 * the debt drains until the instant of the write, or for a release until the last booking if that is later. Then an admission
 * adds its cost; a charge adds its cost up to twice the capacity, but never lowers what is owed; a refund takes its cost off,
 * down to 0.
 *
 * With the option `slots`, the units of admissions and charges are counted a second time, by the slot of time in which they came
 * (`bySlot`), from which `released` computes the debt without one of them. That is right only if the same limit has drained all of
 * it. So this count begins where nothing was owed, and ends with the first write under another limit (`fastest` is the largest
 * that the key has had).
 */
function written(owed: Debt, write: Write): Debt {
  const { kind, at, cost, rule } = write
  const instant = kind === 'release' ? latest(at, owed.since) : at
  const { units, since } = drainedUntil(owed, rule, instant)
  const fastest = latest(owed.fastest, rule.limit)
  const isAnotherPace = owed.fastest !== 0n && owed.fastest !== rule.limit
  const before = { units, since, fastest, bySlot: isAnotherPace ? undefined : owed.bySlot }
  const change = cost * rule.windowTicks
  if (kind === 'refund') return { ...before, units: units > change ? units - change : 0n }
  if (kind === 'release') return released(before, write, instant)
  const most = kind === 'admit' ? units + change : latest(units, 2n * rule.capacity * rule.windowTicks)
  const charged = units + change < most ? units + change : most
  if (rule.options.slots === undefined) return { ...before, units: charged }
  const slot = at / slotWidth(rule)
  const isBegun = units === 0n && owed.fastest <= rule.limit
  const bySlot = isBegun ? { begun: at, newest: slot, units: new Map() } : before.bySlot
  return { ...before, units: charged, bySlot: bySlot && withCharge(bySlot, slot, charged - units, rule) }
}

/**
 * Returns `bySlot`, the units of charges by the slot of time in which they came, with one more charge in the slot number `slot`.
 * `charged` is what it added to the debt, in units x ticks. It is rounded up to whole units, as a debt that is counted anew from
 * the slots must not be too small. No slot holds more than can have been charged while it lasted: twice the capacity, the most
 * that may be owed at once, and what drained meanwhile.
 */
function withCharge(bySlot: UnitsBySlot, slot: bigint, charged: bigint, rule: Rule): UnitsBySlot {
  const held = bySlot.units.get(slot) ?? 0n
  const most = 2n * rule.capacity + ceil(rule.limit * slotTicks(rule), rule.windowTicks)
  const more = leastFrom0(ceil(charged, rule.windowTicks), most - held)
  return {
    ...bySlot,
    newest: latest(bySlot.newest, slot),
    units: new Map(bySlot.units).set(slot, held + more),
  }
}

/**
 * The debt after a release of `cost` units of `charge` at an instant. A debt does not tell whose units have drained, so only what
 * is surely still owed of the charge is given back (`surelyOwed`; if it is negative, nothing): its units less all that can have drained
 * since, at `fastest`, the largest limit so far, with a begun tick counted whole.
 *
 * With the option `slots`, charges may also be counted by the slot of time in which they came (`bySlot`). If this one is counted so,
 * in one of the newest slots, the debt is counted anew from all slots, without the released units. This mostly frees more, as
 * what has drained is then not all taken for units of this charge. The smaller debt is the result.
 */
function released(owed: Debt, { cost, charge, rule }: Write, instant: bigint): Debt {
  const ticks = ceil(instant - charge!.at, rule.tick)
  const surelyOwed = charge!.cost * rule.windowTicks - ticks * owed.fastest
  const units = owed.units - leastFrom0(cost * rule.windowTicks, surelyOwed, owed.units)
  if (!owed.bySlot) return { ...owed, units }
  const slot = charge!.at / slotWidth(rule)
  const isAmongSlots = charge!.at >= owed.bySlot.begun && slot > owed.bySlot.newest - slotsOf(rule)
  if (!isAmongSlots) return { ...owed, units }
  const held = owed.bySlot.units.get(slot)!
  const bySlot = {
    ...owed.bySlot,
    units: new Map(owed.bySlot.units).set(slot, held > cost ? held - cost : 0n),
  }
  const fromSlots = debtOfSlots(bySlot, rule, instant)
  return fromSlots < units
    ? { ...owed, units: fromSlots, since: instant, bySlot }
    : { ...owed, units, bySlot }
}

/**
 * The debt at an instant, in units x ticks, if only the charges in these slots had been made, each as if it had come at the end
 * of its slot: the latest it can have come, so never less is owed than in truth. Between two slots the debt drains, down to 0.
 * `end` is the instant up to which it is counted; the newest slot may not be over yet, and then ends at `instant`.
 */
function debtOfSlots({ newest, units }: UnitsBySlot, rule: Rule, instant: bigint): bigint {
  let owed = 0n
  let end = 0n
  for (const slot of [...units.keys()].sort((a, b) => (a < b ? -1 : 1))) {
    const next =
      slot === newest ? smaller((slot + 1n) * slotWidth(rule), instant) : (slot + 1n) * slotWidth(rule)
    owed = drained(owed, (next - end) / rule.tick, rule) + units.get(slot)! * rule.windowTicks
    if (owed > MOST_DEBT) owed = MOST_DEBT
    end = next
  }
  return drained(owed, (instant - end) / rule.tick, rule)
}

const MOST_DEBT = 2n ** 52n

/** The debt that is left, in units x ticks, after so many ticks, in each of which `limit` drains; at least 0. */
function drained(owed: bigint, ticks: bigint, rule: Rule): bigint {
  return leastFrom0(owed - ticks * rule.limit, owed)
}

/** How many slots of time a policy counts its charges in, so that a release can take one of them out. */
function slotsOf({ options }: Rule): bigint {
  return BigInt(options.slots!)
}

/** The width of a slot in ticks: all slots together span two windows, or a little more where that does not divide evenly. */
function slotTicks(rule: Rule): bigint {
  return ceil(2n * rule.windowTicks, slotsOf(rule))
}

/** The width of a slot in microseconds. */
function slotWidth(rule: Rule): bigint {
  return slotTicks(rule) * rule.tick
}

/** The quotient of two whole numbers, rounded up. */
function ceil(number: bigint, by: bigint): bigint {
  return (number + by - 1n) / by
}

/** The smaller of two numbers. */
function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

/** The smallest of some numbers; 0 if that is negative. */
export function leastFrom0(...numbers: readonly bigint[]): bigint {
  return latest(0n, numbers.reduce(smaller))
}

/**
 * The debt that is left at an instant, in units x ticks, and `since`, the instant as of which that is counted. Each whole tick
 * drains `limit`. A tick that has only begun counts next time, as `since` moves on by whole ticks. Only the last tick of a debt does
 * not: it has more to give than is left, which would drain units that are charged in its middle. So `since` moves to the instant
 * itself where no more than one tick's drain is left. Before `since`, which may be the instant of a booking ahead, nothing drains.
 */
function drainedUntil(owed: Debt, { limit, tick }: Rule, instant: bigint): Pick<Debt, 'units' | 'since'> {
  const { units, since } = owed
  if (instant < since) return { units, since }
  const ticks = (instant - since) / tick
  if (ticks * limit >= units) return { units: 0n, since: instant }
  const left = units - ticks * limit
  const isInLastTick = left <= limit
  return { units: left, since: isInLastTick ? instant : since + ticks * tick }
}
