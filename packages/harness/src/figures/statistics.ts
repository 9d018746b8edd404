// Statistics: what a sample says about its source, without any assumption about how the noise is distributed.
import { randomFrom } from './random.js'

/** Samples that are drawn for an interval: its ends move by less than they would with another seed. */
const RESAMPLES = 2000
const SEED = 1

/** The value in the middle when they are sorted; NaN where there are none. */
export function median(values: ArrayLike<number>): number {
  return quantile(values, 0.5)
}

/** The value below which `part` (0 to 1) of the values lie, between two values by proportion; NaN where there are none. */
export function quantile(values: ArrayLike<number>, part: number): number {
  const sorted = Float64Array.from(values).sort()
  const place = (sorted.length - 1) * part
  const below = sorted[Math.floor(place)] ?? NaN
  const above = sorted[Math.ceil(place)] ?? NaN
  return below === above ? below : below + (above - below) * (place - Math.floor(place))
}

/** How wide the middle half of the values is, from the lower quartile to the upper, as a share of their median. */
export function spread(values: ArrayLike<number>): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / Math.abs(median(values))
}

/** For each round of a comparison, the value of one side divided by that of the other. */
export function ratios(some: readonly number[], others: readonly number[]): number[] {
  return some.map((value, round) => value / (others[round] ?? NaN))
}

/**
 * The interval that holds a figure of a sample, for example its median, in 95 of 100 repetitions: a percentile bootstrap in
 * two levels (Davison and Hinkley, Bootstrap Methods and their Application, 3.8). Groups are drawn first, then values within
 * each, because values of one group resemble each other more than those of another. The seed is fixed: the same values give
 * the same interval. One group is an ordinary bootstrap.
 */
export function bootstrapInterval<T>(
  groups: readonly (readonly T[])[],
  figureOf: (sample: readonly T[]) => number,
): [low: number, high: number] {
  const random = randomFrom(SEED)
  const draw = <U>(from: readonly U[]): U[] => from.map(() => from[Math.floor(random() * from.length)]!)
  const figures = Array.from({ length: RESAMPLES }, () =>
    figureOf(draw(groups).flatMap((group) => draw(group))),
  )
  return [quantile(figures, 0.025), quantile(figures, 0.975)]
}
