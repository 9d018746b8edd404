// Decisions a second of everyone who asks Redis, for the chart.
import { median } from '@sluice/harness/figures'
import { floors } from './contenders/floors.js'

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
    bars: [...(turns.get(title) ?? [])]
      .map(([name, each]) => ({
        name,
        value: median(each.map(({ perSecond }) => perSecond)),
        kind: name.startsWith('Sluice') ? /** @type {const} */ ('sluice') : kindOf(name),
      }))
      .filter(({ value }) => Number.isFinite(value)),
  }))
}

/** @param {string} name @returns {'floor' | 'peer'} */
function kindOf(name) {
  return name in floors ? 'floor' : 'peer'
}
