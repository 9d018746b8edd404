// What a sample says about what it was drawn from, without any assumption about how the noise is distributed.
import { randomFrom } from './random.js'

/** Samples that are drawn for an interval: its ends move by less than they would with another seed. */
const RESAMPLES = 2000
const SEED = 1

/** @param {ArrayLike<number>} values */
export function median(values) {
  return quantile(values, 0.5)
}

/**
 * The value below which `part` of the values lie, between two values by proportion; NaN where there are none.
 * @param {ArrayLike<number>} values
 * @param {number} part From 0 to 1.
 */
export function quantile(values, part) {
  const sorted = Float64Array.from(values).sort()
  const place = (sorted.length - 1) * part
  const below = sorted[Math.floor(place)] ?? NaN
  const above = sorted[Math.ceil(place)] ?? NaN
  return below === above ? below : below + (above - below) * (place - Math.floor(place))
}

/** How far the middle half of the values lies apart, to their median. @param {ArrayLike<number>} values */
export function spread(values) {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / Math.abs(median(values))
}

/**
 * Of each round, what one had to what the other had.
 * @param {readonly number[]} some
 * @param {readonly number[]} others
 */
export function ratios(some, others) {
  return some.map((value, round) => value / (others[round] ?? NaN))
}

/**
 * The interval that holds the median in 95 of 100 repetitions: a percentile bootstrap in two levels (Davison and
 * Hinkley, Bootstrap Methods and their Application, 3.8). Groups are drawn first, then values within each, because
 * values of one group resemble each other more than those of another. The seed is fixed: the same values give the same
 * interval.
 * @param {readonly (readonly number[])[]} groups One group is an ordinary bootstrap.
 * @returns {[low: number, high: number]}
 */
export function medianInterval(groups) {
  const random = randomFrom(SEED)
  const draw = (/** @type {readonly any[]} */ from) =>
    from.map(() => from[Math.floor(random() * from.length)])
  const medians = Array.from({ length: RESAMPLES }, () => median(draw(groups).flatMap(draw)))
  return [quantile(medians, 0.025), quantile(medians, 0.975)]
}
