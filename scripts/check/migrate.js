// Checks the pages of docs/migrate without running them: npm run check -- migrate [--write]. Each row says that it is the same,
// differs or has no counterpart, each that is run has its script, and the README's table of all options is made from the rows.
// `--write` writes that table.
import { readFileSync } from 'node:fs'
import { faultsOf, PAGES, readPages } from '../verify/migrate/pages.js'
import { writeOrCompare } from './written.js'

const README = `${PAGES}/README.md`
const HEAD = '| option | package | here |\n|---|---|---|\n'
const TABLE = /^\| option \| package \| here \|\n\|---\|---\|---\|\n(?:\|.+\|\n)*/m

const pages = readPages()
const faults = pages.flatMap(faultsOf)
const before = readFileSync(README, 'utf8')
const after = before.replace(TABLE, () => HEAD + linesOf(pages).join(''))
writeOrCompare('migrate', [[README, after]])

for (const fault of faults) console.log(fault)
const rows = pages.flatMap(({ tables }) => tables.flatMap((table) => table.rows))
const count = (/** @type {string} */ kind) => rows.filter((row) => row.kind === kind).length
console.log(
  `${rows.length} rows: ${count('same')} same, ${count('differs')} differ, ${count('none')} none; ${faults.length} wrong`,
)
if (faults.length > 0) process.exitCode = 1

/** A line for each name of each row, by name. @param {ReturnType<typeof readPages>} pages */
function linesOf(pages) {
  return pages
    .flatMap(({ file, tables }) =>
      tables.flatMap((table) =>
        table.rows.flatMap(({ names, here }) =>
          names.map((name) => ({
            name,
            line: `| \`${name}\` | [${table.package}](${file}#${anchorOf(table)}) | ${linkedFrom(file, here)} |\n`,
          })),
        ),
      ),
    )
    .toSorted(
      (one, other) =>
        compare(one.name.toLowerCase(), other.name.toLowerCase()) || compare(one.line, other.line),
    )
    .map(({ line }) => line)
}

/** The anchor of a table's heading. @param {{ heading: string }} table */
function anchorOf({ heading }) {
  return heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-')
}

/** Links within a page need its name here. @param {string} file @param {string} cell */
function linkedFrom(file, cell) {
  return cell.replaceAll('](#', `](${file}#`).replaceAll('|', '\\|')
}

/** @param {string} one @param {string} other */
function compare(one, other) {
  return one < other ? -1 : Number(one > other)
}
