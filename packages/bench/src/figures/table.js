// Tables that read well on a terminal and as Markdown.
import { judged } from './goals.js'

/** @typedef {import('./goals.js').Goal} Goal */

/**
 * @typedef {object} Table
 * @property {string} title
 * @property {readonly string[]} columns
 * @property {readonly (readonly string[])[]} rows
 */

/** @param {Table} table */
export function markdownOf({ columns, rows }) {
  const widths = columns.map((column, i) =>
    Math.max(column.length, 3, ...rows.map((row) => (row[i] ?? '').length)),
  )
  const line = (/** @type {readonly string[]} */ cells) =>
    `| ${widths.map((width, i) => pad(cells[i] ?? '', width, i > 0)).join(' | ')} |`
  const rule = widths.map((width, i) => (i > 0 ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)))
  return [line(columns), line(rule), ...rows.map(line)].join('\n')
}

/** Every goal, a line each. @param {readonly Goal[]} goals @param {number} load @returns {Table} */
export function goalTable(goals, load) {
  return {
    title: 'Goals',
    columns: ['path', 'Sluice', 'peer or floor', 'its figure', 'goal', 'ratio', '95 % interval', 'verdict'],
    rows: goals.map((goal) => {
      const { sluice, peer, value, interval, verdict, doubt } = judged(goal, load)
      const isRatio = goal.against !== ''
      const shown = verdict === 'missed' ? '**missed**' : verdict
      return [
        goal.path,
        `${short(sluice)} ${goal.unit}`,
        goal.against || '-',
        isRatio ? `${short(peer)} ${goal.unit}` : '-',
        `${goal.sense === 'at least' ? '>=' : '<='} ${short(goal.bound)} ${isRatio ? 'x' : goal.unit}`,
        isRatio ? `${short(value)} x` : '-',
        interval.map(short).join(' .. '),
        doubt === undefined ? shown : `(${shown}: ${doubt})`,
      ]
    }),
  }
}

/** Three digits that matter, or all of a whole number. @param {number} value */
export function short(value) {
  if (!Number.isFinite(value)) return '-'
  return Math.abs(value) >= 100
    ? Math.round(value).toLocaleString('en')
    : String(Number(value.toPrecision(3)))
}

/** @param {number} part */
export function percent(part) {
  return Number.isFinite(part) ? `${Math.round(part * 100)} %` : '-'
}

/**
 * @param {string} text
 * @param {number} width
 * @param {boolean} toTheRight
 */
function pad(text, width, toTheRight) {
  return toTheRight ? text.padStart(width) : text.padEnd(width)
}
