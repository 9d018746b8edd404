// Decisions a second over Redis, for charts.
import { median } from '@sluice/harness/figures'
import { floors } from './contenders/floors.js'

/** @typedef {import('../figures/chart.js').Bar} Bar */

/** Loads of many keys, where all contenders are measured. */
const LOADS = ['256 callers', '64 callers', '8 callers']

/**
 * @param {Map<string, Map<string, import('./measure.js').Turn[]>>} turns By load and contender.
 * @returns {import('../figures/chart.js').Panel[]}
 */
export function panelsOf(turns) {
  return LOADS.map((title) => ({
    title,
    about: 'decisions a second, 10,000 keys',
    bars: barsOf(turns.get(title) ?? [], kindOf),
  }))
}

/**
 * A bar for each contender that was measured: the median of its rounds.
 * @param {Iterable<[name: string, turns: readonly import('./measure.js').Turn[]]>} byName
 * @param {(name: string) => Bar['kind']} kind
 * @returns {Bar[]}
 */
export function barsOf(byName, kind) {
  return [...byName]
    .map(([name, each]) => ({
      name,
      value: median(each.map(({ perSecond }) => perSecond)),
      kind: kind(name),
    }))
    .filter(({ value }) => Number.isFinite(value))
}

/** @param {string} name @returns {Bar['kind']} */
function kindOf(name) {
  if (name.startsWith('Sluice')) return 'sluice'
  return name in floors ? 'floor' : 'peer'
}
