import { median, spread } from '@sluice/harness/figures'
import { percent, short } from '../figures/table.js'
import { loads } from './loads.js'

/** @typedef {import('./measure.js').Turn} Turn */

/**
 * A table a load.
 * @param {Map<string, Map<string, Turn[]>>} turns
 */
export function loadTables(turns) {
  return [...turns].map(([title, byName]) => ({
    title: `${title}, ${loads[title]?.keys.toLocaleString('en')} ${loads[title]?.keys === 1 ? 'key' : 'keys'}`,
    columns: ['', 'decisions/s', 'spread', 'p50, ms', 'p99, ms', 'Redis CPU, us', 'client CPU, us'],
    rows: [...byName].map(([name, each]) => {
      const of = (/** @type {keyof Turn} */ figure) => each.map((turn) => turn[figure])
      const times = /** @type {const} */ (['p50', 'p99', 'serverUs', 'cpuUs']).map((figure) =>
        short(median(of(figure))),
      )
      return [name, short(median(of('perSecond'))), percent(spread(of('perSecond'))), ...times]
    }),
  }))
}

/** @param {Awaited<ReturnType<typeof import('./half-load.js').atHalfLoad>>} half */
export function halfLoadTable({ perSecond, turns }) {
  return {
    title: `Half load: ${short(perSecond)} calls a second, answered or not`,
    columns: ['', 'p50, ms', 'p99, ms', 'spread of p99'],
    rows: [...turns].map(([name, each]) => {
      const p99 = each.map((turn) => turn.p99)
      return [name, short(median(each.map((turn) => turn.p50))), short(median(p99)), percent(spread(p99))]
    }),
  }
}

/** @param {Awaited<ReturnType<typeof import('./leases.js').hotKeySpeed>>} leases */
export function leaseTable(leases) {
  return {
    title: 'One hot key of several processes, 256 callers in each',
    columns: ['', 'processes', 'allowed/s, all together', 'spread'],
    rows: [...leases].flatMap(([size, byName]) =>
      [...byName].map(([name, each]) => [name, String(size), short(median(each)), percent(spread(each))]),
    ),
  }
}

/** @param {Map<string, number[]>} scripts */
export function scriptTable(scripts) {
  return {
    title: 'Scripts of calls that travel alone (INFO commandstats)',
    columns: ['', 'us a decision', 'spread'],
    rows: [...scripts].map(([name, us]) => [name, short(median(us)), percent(spread(us))]),
  }
}

/** @param {Map<string, { perCpuSecond: number, calls: number, asked: number }[]>} denied */
export function denialTable(denied) {
  return {
    title: 'Denials of a key that Redis has denied',
    columns: ['', 'million/s of CPU', 'spread', 'calls of Redis in a million'],
    rows: [...denied].map(([name, each]) => {
      const speeds = each.map(({ perCpuSecond }) => perCpuSecond / 1e6)
      const asked = median(each.map((turn) => (1e6 * turn.asked) / turn.calls))
      return [name, short(median(speeds)), percent(spread(speeds)), asked.toFixed(1)]
    }),
  }
}
