// What a sample says about what it was drawn from, without any assumption about how the noise is distributed.
import { randomFrom } from './random.js'
import { median } from './rounds.js'

/** Samples that are drawn for an interval: its ends move by less than they would with another seed. */
const RESAMPLES = 2000
const SEED = 1

/**
 * The value below which `part` of the values lie, between two values by proportion.
 * @param {readonly number[]} values
 * @param {number} part From 0 to 1.
 */
export function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * part
  const below = sorted[Math.floor(place)] ?? NaN
  const above = sorted[Math.ceil(place)] ?? NaN
  return below + (above - below) * (place - Math.floor(place))
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
