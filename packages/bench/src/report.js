// What a part of the bench gives, and how it gets into docs/benchmarks: a table, a chart, and how to repeat it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { chartOf } from './figures/chart.js'
import { machine, versions } from './figures/machine.js'
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
 * @property {boolean} large Also what takes long, or much memory.
 * @property {(line: string) => void} say Tells how far it is.
 *
 * @typedef {object} Figures
 * @property {import('./figures/goals.js').Goal[]} goals
 * @property {readonly import('./figures/table.js').Table[]} tables
 * @property {string} [chart] Instead of that of the goals.
 * @property {readonly string[]} [checked] What was found to be right, beside the speed.
 */

const folder = new URL('../../../docs/benchmarks/', import.meta.url)

/**
 * The page of a part, as Markdown.
 * @param {Part} part
 * @param {Figures} figures
 * @param {{ rounds: number, seconds: number, load: string }} run `load`: of the machine, before.
 */
export function pageOf(
  { name, title, packages, notes },
  { goals, tables, checked = [] },
  { rounds, seconds, load },
) {
  const facts = [
    `- machine: ${machine()}; load of others before the run: ${load}`,
    `- versions: ${versions(packages)}`,
    `- ${new Date().toISOString().slice(0, 10)}, ${rounds} rounds, ${Math.round(seconds)} s; repeat it with \`npm run bench -- ${name}\``,
  ]
  const all = goals.length > 0 ? [goalTable(goals), ...tables] : tables
  return [
    `# Benchmark: ${title}`,
    ...notes,
    'Contenders take turns in every round. Figures are medians; a ratio is the median of the ratios of the rounds, its spread how far the middle half of them lies apart. Quote the ratios: the rest is this machine.',
    facts.join('\n'),
    `![${title}, as a chart](${name}.svg)`,
    ...all.flatMap((table) => [`## ${table.title}`, markdownOf(table)]),
    ...(checked.length > 0 ? ['## Checked', checked.map((line) => `- ${line}`).join('\n')] : []),
  ].join('\n\n')
}

/**
 * @param {Part} part
 * @param {string} page
 * @param {Figures} figures
 */
export function publish({ name, title }, page, { goals, chart = chartOf(title, goals) }) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL(`${name}.md`, folder), `${page}\n`)
  writeFileSync(new URL(`${name}.svg`, folder), chart)
}
