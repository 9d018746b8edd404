import type { Penalty } from '@sluice/core/store'
import * as fc from 'fast-check'
import { type Model, type Options, ticksOf } from './rule.js'
import type { Shape } from './shapes.js'

/** Numbers that leave the shape as it is: calls of one key may come with any of them. */
export type Tier = Options

/** Windows in milliseconds: around the edges of the contract, and of the hour above which a tick is 1 ms. */
const WINDOWS = [
  1, 2, 3, 7, 10, 100, 1000, 3000, 60_000, 3_600_000, 3_600_010, 7_200_000, 86_400_000, 31_536_000_000,
]
/** Four years in microseconds: sixteen such waits from our days on stay below 2^53, up to which numbers are exact. */
const LONGEST = 2 ** 47
const LIMITS = [1, 2, 3, 5, 7, 10, 60, 240, 1000, 100_000, 300_000, 700_000, 2 ** 31]

/**
 * Draws `count` sets of options of one shape (an algorithm in one of its variants), which differ in limit and capacity alone: one
 * key may be called under any of them. With `differ` 'in all' they also differ in other options on which no shape depends, as the
 * zone of a calendar. The window, in milliseconds, and the options that make the shape are the same for all. A draw is discarded if
 * the contract refuses its window for this shape, or if its debts would last too long.
 */
export function tiers(
  shape: Shape,
  count: number,
  differ: 'in numbers' | 'in all' = 'in numbers',
): fc.Arbitrary<readonly Tier[]> {
  const { onlyWindow, plain, draws: shapeDraws = [], listDraws = [] } = shape.model
  const shapeless = fc.oneof(fc.constant({}), fc.constantFrom({}, ...listDraws))
  const common = fc
    .tuple(fc.constantFrom(...WINDOWS), fc.constantFrom({}, ...shapeDraws), shapeless)
    .map(([window, ofShape, others]) => {
      const options = { ...plain, ...ofShape, ...shape.own, ...others }
      return { ...options, window: onlyWindow ? onlyWindow(options) : window }
    })
    .filter((fixed) => dividesEvenly(shape, fixed))
  return common
    .chain((fixed) => {
      const tier = fc
        .tuple(numbers(shape, fixed), differ === 'in all' ? shapeless : fc.constant({}))
        .map(([own, others]) => ({ ...own, ...others }))
      return fc.tuple(...Array.from({ length: count }, () => tier))
    })
    .filter((drawn) => endsInTime(shape, drawn))
}

/**
 * Penalties whose blocks are as long as windows. `factor` 1 or `maxBlock` equal to `block` make blocks that never grow, a factor
 * of 1,000 the longest block at once. Durations are microseconds.
 */
export const penalties: fc.Arbitrary<Penalty> = fc
  .tuple(
    fc.integer({ min: 1, max: 3 }),
    fc.constantFrom(...WINDOWS.slice(0, -1)),
    fc.constantFrom(1, 1.5, 2, 10, 1000),
    fc.constantFrom(1, 3, 24),
    fc.constantFrom(...WINDOWS.slice(0, -1)),
  )
  .map(([after, block, factor, times, forgetAfter]) => {
    return {
      after,
      block: block * 1000,
      factor,
      maxBlock: block * times * 1000,
      forgetAfter: forgetAfter * 1000,
    }
  })

/** Draws one set of options of a shape, an algorithm in one of its variants. */
export function options(shape: Shape): fc.Arbitrary<Options> {
  return tiers(shape, 1).map(([only]) => only!)
}

type Fixed = Partial<Options> & { readonly window: number }

/**
 * Draws a limit for a shape with a given window, and a capacity (`burst` for gcra) where the algorithm has one, which is left out
 * in some draws. Half of the limits are at most 9, where edges are near; others are round, or the largest that the contract
 * allows for the window and one below it.
 */
function numbers(shape: Shape, fixed: Fixed): fc.Arbitrary<Tier> {
  const most = largestLimit(shape, fixed)
  const small = fc.integer({ min: 1, max: Math.min(9, most) })
  const limit = fc.oneof(
    { weight: 3, arbitrary: small },
    { weight: 2, arbitrary: fc.constantFrom(...LIMITS.filter((n) => n <= most)) },
    { weight: 1, arbitrary: fc.constantFrom(most, Math.max(1, most - 1)) },
  )
  const { capacity } = shape.model
  if (!capacity) return limit.map((units) => ({ ...fixed, limit: units }))
  return fc.tuple(limit, fc.option(fc.oneof(small, limit), { freq: 2 })).map(([units, burst]) => ({
    ...fixed,
    limit: units,
    ...(burst === null ? {} : { [capacity]: burst }),
  }))
}

/**
 * The largest limit that is drawn for a shape with this window. Some algorithms multiply units by the ticks of the window
 * (`multiplied`), and sums of such products must stay exact, that is below 2^53. So the product of limit and ticks is at most
 * 2^52. Where a state may hold several times the limit it is less: 2^51 for weighted buckets, which are those without a
 * capacity, and 2^50 with `slots`. No limit is above 2^31, the largest cost of a call, nor above the bound that an algorithm may
 * have of its own, as the log does.
 */
function largestLimit({ model }: Shape, fixed: Fixed): number {
  const bits = fixed.slots ? 50 : model.capacity ? 52 : 51
  const exactUpTo = model.multiplied(fixed) ? Math.floor(2 ** bits / windowTicks(model, fixed)) : Infinity
  return Math.min(model.largestLimit ?? Infinity, exactUpTo, 2 ** 31)
}

/** How many ticks, the unit in which the algorithm counts time, a window of these options has. */
function windowTicks(model: Model, fixed: Fixed): number {
  return (fixed.window * 1000) / Number(ticksOf(model, fixed))
}

/**
 * Whether these options divide the window into buckets, 10 by default, of whole ticks each (a tick is a microsecond, or a
 * millisecond in long windows). The contract refuses other windows.
 */
function dividesEvenly({ model }: Shape, fixed: Fixed): boolean {
  return windowTicks(model, fixed) % (fixed.buckets ?? 10) === 0
}

/**
 * Whether a debt of the largest capacity, drained at the smallest limit of the drawn sets of options, is paid off within LONGEST
 * microseconds: after some such waits instants are still exact numbers.
 */
function endsInTime({ model }: Shape, drawn: readonly Tier[]): boolean {
  const largestDebt = Math.max(...drawn.map((tier) => (model.capacity && tier[model.capacity]) ?? tier.limit))
  const slowestLimit = Math.min(...drawn.map(({ limit }) => limit))
  const windowUs = drawn[0]!.window * 1000
  return (largestDebt / slowestLimit) * windowUs <= LONGEST
}
