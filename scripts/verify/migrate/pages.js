// The pages of docs/migrate, as tables of rows. A table's first column names the other package, and its last one says of each
// row which of three kinds it is:
//
//   same                            what the row's script says is the same on both sides
//   differs: `1, 2`, here `1, 3`    it says this there, and that here
//   none: why                       there is nothing to run; the second column says the way round
//
// The scripts stand in a block `js rows` under the table, one for each row of the first two kinds, in the order of the rows.
// Each begins with a comment that has the names of its row.
import { readdirSync, readFileSync } from 'node:fs'

export const PAGES = 'docs/migrate'

/** The most lines of a script, without the comment that names its row. */
const MOST_LINES = 6

/** @typedef {{ file: string, tables: readonly Table[] }} Page */
/** @typedef {{ title: string, package: string, heading: string, rows: readonly Row[], scripts: readonly Script[] }} Table */
/** @typedef {{ there: string, here: string, names: readonly string[], kind: string, answers: readonly string[] }} Row */
/** @typedef {{ title: string, code: string }} Script */

const TABLE = /^(\|.+\|)\n\|[-|]+\|\n((?:\|.+\|\n)+)/gm
const SCRIPTS = /^\s*(?:<details>.*\n)?\s*```js rows\n([^]*?\n)```\n/
const MARK = /^(?:(same)|(differs): `(.+)`, here `(.+)`|(none): .+)$/

/** @returns {readonly Page[]} */
export function readPages(folder = PAGES) {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .toSorted()
    .map((file) => ({ file, tables: tablesOf(readFileSync(`${folder}/${file}`, 'utf8')) }))
}

/**
 * @param {string} text
 * @returns {readonly Table[]}
 */
function tablesOf(text) {
  return [...text.matchAll(TABLE)].map(({ 0: whole, 1: head = '', 2: body = '', index }) => {
    const title = cellsOf(head)[0] ?? ''
    const heading = [...text.slice(0, index).matchAll(/^#+ (.+)$/gm)].at(-1)?.[1] ?? ''
    const scripts = SCRIPTS.exec(text.slice(index + whole.length))?.[1] ?? ''
    const rows = body.trimEnd().split('\n').map(rowOf)
    return { title, package: title.replace(/:.*/, ''), heading, rows, scripts: scriptsOf(scripts) }
  })
}

/**
 * @param {string} line
 * @returns {Row}
 */
function rowOf(line) {
  const [there = '', here = '', mark = ''] = cellsOf(line)
  const [, same, differs, theirs = '', ours = '', none] = MARK.exec(mark) ?? []
  return { there, here, names: namesIn(there), kind: same ?? differs ?? none ?? '', answers: [theirs, ours] }
}

/** A bar inside of code is escaped. @param {string} line */
function cellsOf(line) {
  return line
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/**
 * The names that a cell is about: of each piece of code the option, the method or the class, without the object before it.
 * Pieces that are values, such as `'draft-6'`, name nothing.
 * @param {string} cell
 */
function namesIn(cell) {
  const names = [...cell.matchAll(/`([^`]+)`/g)].map(
    ([, code = '']) => /^[@{ ]*(?:new )?(?:[\w$]+\.)*([\w$]+)/.exec(code)?.[1],
  )
  return [...new Set(names.filter((name) => name !== undefined))]
}

/**
 * @param {string} block
 * @returns {readonly Script[]}
 */
function scriptsOf(block) {
  return [...block.matchAll(/^\/\/ (.+)\n((?:(?!\/\/ ).*\n)*)/gm)].map(([, title = '', code = '']) => ({
    title,
    code: code.trimEnd(),
  }))
}

/** The rows that are run, each with its script. @param {Table} table */
export function runRows({ rows, scripts }) {
  return rows.filter(isRun).map((row, i) => ({ row, script: scripts[i] ?? { title: '', code: '' } }))
}

/** @param {Row} row */
function isRun({ kind }) {
  return kind === 'same' || kind === 'differs'
}

/** The mistakes of a page, before anything of it is run. @param {Page} page */
export function faultsOf({ file, tables }) {
  return tables.flatMap((table) => [
    ...table.rows
      .filter(({ kind }) => kind === '')
      .map(({ there }) => `${file}: ${there} is neither same, nor differs, nor none`),
    ...table.rows
      .filter(({ names }) => names.length === 0)
      .map(({ there }) => `${file}: ${there} names no option`),
    ...runRows(table).flatMap(({ row, script }) => faultsOfScript(file, row, script)),
    ...table.scripts
      .slice(table.rows.filter(isRun).length)
      .map(({ title }) => `${file}: the script of ${title} has no row`),
  ])
}

/**
 * @param {string} file
 * @param {Row} row
 * @param {Script} script
 */
function faultsOfScript(file, { there, names }, { title, code }) {
  const expected = names.join(', ')
  if (title !== expected)
    return [`${file}: ${there} must have a script named '${expected}' in its place, got '${title}'`]
  const lines = code.split('\n').filter(Boolean).length
  return lines <= MOST_LINES
    ? []
    : [`${file}: the script of ${title} has ${lines} lines, at most ${MOST_LINES}`]
}
