// The result of the rounds of a path: a ratio of speeds, its interval, and whether it reaches the bar.
import { bootstrapInterval, median, ratios } from '@sluice/harness/figures'
import { short } from '../figures/table.js'
import { verdictOf as verdictOn } from '../figures/verdict.js'

/** @typedef {'this' | 'before'} Side */

/** @type {readonly Side[]} */
export const SIDES = ['this', 'before']

/**
 * @typedef {object} Run
 * @property {Readonly<Record<Side, string>>} roots The two checkouts.
 * @property {number} rounds
 * @property {(path: string) => boolean} wanted
 * @property {(line: string) => void} say Reports how far the run is.
 *
 * @typedef {object} Row
 * @property {string} path
 * @property {string} unit
 * @property {number} now Median of this build, in the unit.
 * @property {number} before Median of the other.
 * @property {number} ratio Median of the rounds' ratios of speed: above 1 this build is faster.
 * @property {[low: number, high: number]} interval Of the ratio, 95 %.
 */

/**
 * @template T
 * @param {string} path
 * @param {string} unit
 * @param {readonly Map<string, T[]>[]} pairs
 * @param {(turn: T) => number} figureOf
 * @param {{ moreIsFaster?: boolean }} [options]
 * @returns {Row}
 */
export function rowOf(path, unit, pairs, figureOf, { moreIsFaster = false } = {}) {
  const figures = (/** @type {Side} */ side) => pairs.map((pair) => (pair.get(side) ?? []).map(figureOf))
  const [now, before] = [figures('this'), figures('before')]
  const [above, below] = moreIsFaster ? [now, before] : [before, now]
  const speeds = above.map((figuresOfPair, pair) => ratios(figuresOfPair, below[pair] ?? []))
  return {
    path,
    unit,
    now: median(now.flat()),
    before: median(before.flat()),
    ratio: median(speeds.flat()),
    interval: bootstrapInterval(speeds, median),
  }
}

/** `not shown` where the interval holds the bar. @param {Row} row @param {number} bar */
export function verdictOf({ interval }, bar) {
  return verdictOn(interval, { sense: 'at least', bound: bar })
}

/**
 * @param {string} title
 * @param {readonly Row[]} rows
 * @param {number} bar
 * @returns {import('../figures/table.js').Table}
 */
export function tableOf(title, rows, bar) {
  return {
    title,
    columns: ['path', 'this', 'before', 'this / before', '95 % interval', `>= ${bar}`],
    rows: rows.map((row) => [
      row.path,
      `${short(row.now)} ${row.unit}`,
      `${short(row.before)} ${row.unit}`,
      row.ratio.toFixed(3),
      row.interval.map((end) => end.toFixed(3)).join(' .. '),
      verdictOf(row, bar),
    ]),
  }
}
