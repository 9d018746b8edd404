// What a part of the bench gives, and how it gets into docs/benchmarks: the figures as JSON, and from them, by machine, a
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
 * @typedef {Figures & { run: Run }} Record What docs/benchmarks/NAME.json holds.
 */

const folder = new URL('../../../docs/benchmarks/', import.meta.url)

/** @param {string} name @param {Record} record */
export function save(name, record) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(record, rounded, 1)}\n`)
}

/** What was measured last; undefined where nothing was. @param {string} name @returns {Record | undefined} */
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
  const chart = chartOf({ title: part.title, note: noteOf(run), panels })
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
    'Contenders take turns in every round. Figures are medians; a ratio is the median of the ratios of the rounds. Quote the ratios: the rest is this machine.',
    ...(goals.length > 0 ? [VERDICTS] : []),
    facts.join('\n'),
    ...all.flatMap((table) => [`## ${table.title}`, markdownOf(table)]),
    ...(checked.length > 0 ? ['## Checked', checked.map((line) => `- ${line}`).join('\n')] : []),
  ].join('\n\n')
}

const VERDICTS =
  'A goal is met where the whole 95 % bootstrap interval of the ratio reaches it, missed where no part of it does, else not shown, after two repetitions. A verdict in brackets does not count, for the reason beside it: fewer than 31 rounds, a load of 0.3 or more before the run, or a spread of the figures that Sluice is compared with (of their middle half) of 10 % or more.'

/** Panels of the overview: from each page the one that most would ask for. */
const OVERVIEW = /** @type {const} */ ([
  ['memory', 'one hot key', 'In memory, one hot key'],
  ['redis', '256 callers', 'Redis, 256 callers'],
  ['http', 'Express', 'Express'],
])

/** Writes the chart that README and docs/benchmarks begin with, once all of its parts have been measured. */
export function publishOverview() {
  const panels = []
  for (const [name, title, shown] of OVERVIEW) {
    const record = load(name)
    const panel = record?.panels?.find((each) => each.title === title)
    if (!record || !panel) return
    panels.push({
      note: noteOf(record.run),
      panel: { ...panel, title: shown, bars: panel.bars.filter(isInOverview) },
    })
  }
  const chart = chartOf({
    title: 'Decisions a second, by library',
    note: panels[0]?.note ?? '',
    panels: panels.map(({ panel }) => panel),
  })
  writeFileSync(new URL('decisions.svg', folder), chart)
}

/** One line of Sluice in each, and no variants. @param {import('./figures/chart.js').Bar} bar */
function isInOverview({ name, kind }) {
  if (kind === 'sluice') return name === 'Sluice' || name === 'Sluice, await consume'
  return name !== 'bare GCRA' && name !== 'EVALSHA return 1' && name !== 'PING'
}

/** @param {Run} run */
function noteOf({ date, machine, versions }) {
  const [node = '', sluice = ''] = versions.split(', ')
  return `${date} · ${machine} · ${node} · ${sluice} · more is better`
}
