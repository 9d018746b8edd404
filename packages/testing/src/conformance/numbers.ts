import type { Penalty } from '@sluice/core/store'
import * as fc from 'fast-check'
import { type Options, ticksOf } from './rule.js'
import type { Shape } from './shapes.js'

/** Numbers that leave the shape as it is: calls of one key may come with any of them. */
export type Tier = Options

/** Windows in milliseconds: around the edges of the contract, and of the hour above which a tick is 1 ms. */
const WINDOWS = [
  1, 2, 3, 7, 10, 100, 1000, 3000, 60_000, 3_600_000, 3_600_010, 7_200_000, 86_400_000, 31_536_000_000,
]
/** Four years in microseconds: sixteen such waits from our days on stay below 2^53. */
const LONGEST = 2 ** 47
const LIMITS = [1, 2, 3, 5, 7, 10, 60, 240, 1000, 100_000, 300_000, 700_000, 2 ** 31]

/** Draws `count` sets of options of one shape, which differ in limit and capacity alone. */
export function tiers(shape: Shape, count: number): fc.Arbitrary<readonly Tier[]> {
  return fc
    .tuple(fc.constantFrom(...WINDOWS), fc.constantFrom({}, ...(shape.model.draws ?? [])))
    .map(([window, extra]) => ({ ...extra, ...shape.variant, window }))
    .filter((fixed) => dividesEvenly(shape, fixed))
    .chain((fixed) => fc.tuple(...Array.from({ length: count }, () => numbers(shape, fixed))))
    .filter((drawn) => endsInTime(shape, drawn))
}

/** Penalties of windows' lengths, up to those that never grow and those that reach the longest block at once. */
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

/** Draws one set of options that the algorithm takes in this variant. */
export function options(shape: Shape): fc.Arbitrary<Options> {
  return tiers(shape, 1).map(([only]) => only!)
}

type Fixed = Partial<Options> & { readonly window: number }

/** Draws limits and capacities for a shape: mostly small ones, and the largest that it allows. */
function numbers(shape: Shape, fixed: Fixed): fc.Arbitrary<Tier> {
  const most = largest(shape, fixed)
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

/** Products of units and ticks are taken up to 2^52, of windows that fade up to 2^51, with slots 2^50; a cost may be at most 2^31. */
function largest({ model }: Shape, fixed: Fixed): number {
  const ticks = (fixed.window * 1000) / Number(ticksOf(model, fixed))
  const most = fixed.slots ? 50 : model.capacity ? 52 : 51
  const product = model.multiplied(fixed) ? Math.floor(2 ** most / ticks) : Infinity
  return Math.min(model.largestLimit ?? Infinity, product, 2 ** 31)
}

/** Whether these options divide the window evenly into its buckets, 10 by default, in whole ticks; other windows are refused. */
function dividesEvenly({ model }: Shape, fixed: Fixed): boolean {
  return ((fixed.window * 1000) / Number(ticksOf(model, fixed))) % (fixed.buckets ?? 10) === 0
}

/** The debt of the fullest capacity under the slowest limit is paid back while instants are still exact numbers. */
function endsInTime({ model }: Shape, drawn: readonly Tier[]): boolean {
  const most = Math.max(...drawn.map((tier) => (model.capacity && tier[model.capacity]) ?? tier.limit))
  const slowest = Math.min(...drawn.map(({ limit }) => limit))
  return (most / slowest) * drawn[0]!.window * 1000 <= LONGEST
}
