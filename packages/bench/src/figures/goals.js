// The goals of the project, beside what was measured. A goal keeps the figures of all rounds; its ratio, interval and
// verdict are computed from them, so that a repetition only adds rounds.
import { bootstrapInterval, median, spread } from '@sluice/harness/figures'
import { doubtAbout, verdictOf } from './verdict.js'

/**
 * @typedef {readonly (readonly number[])[]} Groups A figure a round; a group holds the rounds that had the same processes.
 *
 * @typedef {object} Goal
 * @property {string} path What is measured.
 * @property {string} unit Of the figures.
 * @property {readonly string[]} contenders Whom a repetition has to measure.
 * @property {Groups} ours
 * @property {string} against The peer or floor, or '' where the figure is judged by itself.
 * @property {Groups} theirs Empty where the figure is judged by itself.
 * @property {Groups} [base] What both share, and is subtracted from both: then the ratio is that of the medians.
 * @property {'at least' | 'at most'} sense
 * @property {number} bound
 *
 * @typedef {object} Judged
 * @property {number} sluice Medians.
 * @property {number} peer
 * @property {number} value What is judged: the median of the rounds' ratios, or of the figure itself.
 * @property {[low: number, high: number]} interval Of the value, 95 %.
 * @property {import('./verdict.js').Verdict} verdict
 * @property {string | undefined} doubt Why the verdict does not count.
 */

/** @typedef {{ atLeast: number } | { atMost: number }} Bound */
/** @typedef {{ ours: number, theirs: number, base: number }} Round */

/**
 * A ratio to another contender, in the same rounds.
 * @param {string} path
 * @param {readonly [name: string, figures: Groups]} sluice
 * @param {readonly [name: string, figures: Groups]} other
 * @param {Bound & { unit: string, base?: Groups, shown?: string }} wanted `shown`: instead of the peer's name.
 * @returns {Goal}
 */
export function ratioGoal(path, [name, ours], [against, theirs], { unit, base, shown, ...bound }) {
  const figures = { ours, against: shown ?? against, theirs, ...(base && { base }) }
  return { path, unit, contenders: [name, against], ...figures, ...boundOf(bound) }
}

/**
 * A figure that is judged by itself.
 * @param {string} path
 * @param {readonly [name: string, figures: Groups]} sluice
 * @param {Bound & { unit: string }} wanted
 * @returns {Goal}
 */
export function figureGoal(path, [name, ours], { unit, ...bound }) {
  return { path, unit, contenders: [name], ours, against: '', theirs: [], ...boundOf(bound) }
}

/** Whether every figure was measured that the goal needs. @param {Goal} goal */
export function isMeasured({ ours, against, theirs }) {
  return Number.isFinite(median(ours.flat())) && (against === '' || Number.isFinite(median(theirs.flat())))
}

/**
 * The goal with the rounds of a repetition.
 * @param {Goal} goal
 * @param {Goal} again
 * @returns {Goal}
 */
export function pooled(goal, again) {
  const base = goal.base && again.base && { base: [...goal.base, ...again.base] }
  return {
    ...goal,
    ours: [...goal.ours, ...again.ours],
    theirs: [...goal.theirs, ...again.theirs],
    ...base,
  }
}

/**
 * @param {Goal} goal
 * @param {number} load Of the machine, before the run.
 * @returns {Judged}
 */
export function judged(goal, load) {
  const groups = roundsOf(goal)
  const all = groups.flat()
  const peerSpread = goal.against === '' ? NaN : spread(all.map(({ theirs }) => theirs))
  const interval = bootstrapInterval(groups, (sample) => valueOf(goal, sample))
  return {
    sluice: median(all.map(({ ours, base }) => ours - base)),
    peer: median(all.map(({ theirs, base }) => theirs - base)),
    value: valueOf(goal, all),
    interval,
    verdict: verdictOf(interval, goal),
    doubt: doubtAbout({ load, rounds: all.length, peerSpread }),
  }
}

/**
 * A difference of two figures that are nearly the same is near 0 in some round, so that no ratio of a single round says
 * much: above a base the ratio is that of the medians.
 * @param {Goal} goal
 * @param {readonly Round[]} rounds
 */
function valueOf({ against, base }, rounds) {
  if (against === '') return median(rounds.map(({ ours }) => ours))
  if (!base) return median(rounds.map(({ ours, theirs }) => ours / theirs))
  const above = (/** @type {'ours' | 'theirs'} */ side) =>
    median(rounds.map((round) => round[side] - round.base))
  return above('ours') / above('theirs')
}

/** @param {Goal} goal @returns {Round[][]} */
function roundsOf({ ours, theirs, base }) {
  return ours.map((group, i) =>
    group.map((figure, round) => ({
      ours: figure,
      theirs: theirs[i]?.[round] ?? NaN,
      base: base ? (base[i]?.[round] ?? NaN) : 0,
    })),
  )
}

/** @param {Bound} bound @returns {{ sense: 'at least' | 'at most', bound: number }} */
function boundOf(bound) {
  return 'atLeast' in bound
    ? { sense: 'at least', bound: bound.atLeast }
    : { sense: 'at most', bound: bound.atMost }
}
