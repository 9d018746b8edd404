// What the project wants to reach, beside what was seen.
import { median, ratios, spread } from '@sluice/testing/figures'

/**
 * @typedef {object} Goal
 * @property {string} path What is measured.
 * @property {number} sluice
 * @property {string} against The peer or floor, or '' where the figure is judged by itself.
 * @property {number} peer
 * @property {string} unit Of both.
 * @property {number} value What is judged: the ratio, or the figure itself.
 * @property {number} spread
 * @property {'at least' | 'at most'} sense
 * @property {number} bound
 */

/** @typedef {{ atLeast: number } | { atMost: number }} Bound */

/**
 * A ratio to somebody else, in the same rounds.
 * @param {string} path
 * @param {readonly number[]} sluice
 * @param {readonly [name: string, figures: readonly number[]]} other
 * @param {Bound & { unit: string }} wanted
 * @returns {Goal}
 */
export function ratioGoal(path, sluice, [against, peer], wanted) {
  const each = ratios(sluice, peer)
  const figures = {
    sluice: median(sluice),
    against,
    peer: median(peer),
    value: median(each),
    spread: spread(each),
  }
  return { path, unit: wanted.unit, ...figures, ...boundOf(wanted) }
}

/**
 * A figure that is judged by itself.
 * @param {string} path
 * @param {readonly number[]} sluice
 * @param {Bound & { unit: string }} wanted
 * @returns {Goal}
 */
export function figureGoal(path, sluice, wanted) {
  const figures = {
    sluice: median(sluice),
    against: '',
    peer: NaN,
    value: median(sluice),
    spread: spread(sluice),
  }
  return { path, unit: wanted.unit, ...figures, ...boundOf(wanted) }
}

/** @param {Goal} goal */
export function isMet({ value, sense, bound }) {
  return sense === 'at least' ? value >= bound : value <= bound
}

/** How much of the goal is reached: 1 or more where it is met. @param {Goal} goal */
export function reach({ value, sense, bound }) {
  if (sense === 'at least') return value / bound
  return value > 0 ? bound / value : Infinity
}

/** @param {Bound} bound @returns {{ sense: 'at least' | 'at most', bound: number }} */
function boundOf(bound) {
  return 'atLeast' in bound
    ? { sense: 'at least', bound: bound.atLeast }
    : { sense: 'at most', bound: bound.atMost }
}
