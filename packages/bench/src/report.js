// The report of a part of the bench, and how it gets into docs/benchmarks: the figures as JSON, and from them, by machine, a
// page with a chart.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chartOf } from './figures/chart.js'
import { goalTable, markdownOf } from './figures/table.js'

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {string} title
 * @property {readonly string[]} packages Whose versions matter.
 * @property {readonly string[]} notes What was measured and how.
 * @property {(options: Options) => Promise<Figures>} measure
 *
 * @typedef {object} Options
 * @property {number} rounds
 * @property {(name: string) => boolean} wanted Whether a contender is to be measured.
 * @property {boolean} goalsOnly Only what goals are judged by.
 * @property {boolean} large Also what takes long, or much memory.
 * @property {(line: string) => void} say Tells how far it is.
 *
 * @typedef {object} Figures
 * @property {import('./figures/goals.js').Goal[]} goals
 * @property {readonly import('./figures/table.js').Table[]} tables
 * @property {readonly import('./figures/chart.js').Panel[]} [panels] Of a chart, where there is one.
 * @property {readonly string[]} [checked] What was found to be right, beside the speed.
 *
 * @typedef {object} Run
 * @property {string} date
 * @property {string} machine
 * @property {string} versions
 * @property {number} load Of the machine, before.
 * @property {number} rounds
 * @property {number} seconds
 *
 * @typedef {import('./figures/chart.js').Panel} Panel
 *
 * @typedef {Figures & { run: Run }} Record What docs/benchmarks/NAME.json holds.
 */

const folder = new URL('../../../docs/benchmarks/', import.meta.url)

/** @param {string} name @param {Record} record */
export function save(name, record) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(record, rounded, 1)}\n`)
}

/** The latest record of a measurement; undefined where there is none. @param {string} name @returns {Record | undefined} */
export function load(name) {
  const file = new URL(`${name}.json`, folder)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

/** Six digits are more than a measurement has. @param {string} _key @param {unknown} value */
function rounded(_key, value) {
  return typeof value === 'number' ? Number(value.toPrecision(6)) : value
}

/** Writes the page of a part and its chart. @param {Part} part @param {Record} record */
export function publish(part, record) {
  writeFileSync(new URL(`${part.name}.md`, folder), `${pageOf(part, record)}\n`)
  const { panels, run } = record
  if (!panels) return
  const chart = chartOf({ title: part.title, notes: notesOf(run), panels: panels.filter(isInOrder) })
  writeFileSync(new URL(`${part.name}.svg`, folder), chart)
}

/** The page of a part, as Markdown. @param {Part} part @param {Record} record */
export function pageOf({ name, title, notes }, { goals, tables, panels, checked = [], run }) {
  const facts = [
    `- machine: ${run.machine}; load of others before the run: ${run.load.toFixed(2)}`,
    `- versions: ${run.versions}`,
    `- ${run.date}, ${run.rounds} rounds, ${run.seconds} s; repeat it with \`npm run bench -- ${name}\``,
  ]
  const all = goals.length > 0 ? [goalTable(goals, run.load), ...tables] : tables
  return [
    `# Benchmark: ${title}`,
    ...(panels ? [`![${title}, as a chart](${name}.svg)`] : []),
    ...notes,
    '[How to read this page](README.md#how-to-read-them).',
    facts.join('\n'),
    ...all.flatMap((table) => [`## ${table.title}`, markdownOf(table)]),
    ...(checked.length > 0 ? ['## Checked', checked.map((line) => `- ${line}`).join('\n')] : []),
  ].join('\n\n')
}

/** Panels of the overview: from each page the one that most would ask for. */
const OVERVIEW = /** @type {const} */ ([
  ['memory', 'one hot key', 'one hot key', 'In memory: decisions a second of CPU'],
  ['memory', '100,000 keys', '100,000 callers', 'In memory: decisions a second of CPU'],
  ['redis', '256 callers', 'Over Redis', 'decisions a second, 256 callers'],
])

/** The panels of the overview, without variants of Sluice and floors; undefined until all have been measured. */
export function overviewPanels() {
  const panels = OVERVIEW.map(([name, title, shown, about]) => {
    const panel = load(name)?.panels?.find((each) => each.title === title)
    return panel && { title: shown, about, bars: panel.bars.filter(isInOverview) }
  })
  return panels.every((panel) => panel !== undefined) ? panels : undefined
}

/** Writes the chart that docs/benchmarks begins with, and that README has. */
export function publishOverview() {
  const [panels, first] = [overviewPanels(), load(OVERVIEW[0][0])]
  if (!panels || !first) return
  const chart = chartOf({ title: 'Decisions a second, by library', notes: notesOf(first.run), panels })
  writeFileSync(new URL('decisions.svg', folder), chart)
}

/** @param {import('./figures/chart.js').Bar} bar */
function isInOverview({ name, kind }) {
  return kind === 'peer' || name === 'Sluice' || name === 'Sluice, await consume'
}

/** Noise turned the bars of a panel round where what limits is faster than nothing: such a panel is not drawn. @param {Panel} panel */
function isInOrder({ bars }) {
  const bare = bars.find(({ name }) => name === 'no limiter')
  return bare === undefined || bars.every(({ value }) => value <= bare.value)
}

/** @param {Run} run */
function notesOf({ date, machine, versions }) {
  const [node = '', sluice = ''] = versions.split(', ')
  return [`${date} · ${node} · ${sluice}`, machine]
}
