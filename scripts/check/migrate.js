// Checks the pages of docs/migrate without running them: npm run check -- migrate [--write]. Each row says that it is the same,
// differs or has no counterpart, each that is run has its script, and the README's table of all options is made from the rows.
// `--write` writes that table, and what `sluice option` prints of it.
import { existsSync, readFileSync } from 'node:fs'
import { faultsOf, PAGES, readPages } from '../verify/migrate/pages.js'
import { writeOrCompare } from './written.js'

const README = `${PAGES}/README.md`
const HEAD = '| option | package | here |\n|---|---|---|\n'
const OPTIONS = 'packages/cli/src/terminal/others.gen.ts'
const TABLE = /^\| option \| package \| here \|\n\|---\|---\|---\|\n(?:\|.+\|\n)*/m

const pages = readPages()
const faults = pages.flatMap(faultsOf)
const before = readFileSync(README, 'utf8')
const after = before.replace(TABLE, () => HEAD + linesOf(pages).join(''))
const rowsOfCli = `// Made from docs/migrate by npm run check -- migrate --write.
export const OTHERS: readonly (readonly string[])[] = ${JSON.stringify(entriesOf(pages).map(({ name, table, file, here }) => [name, table.package, file, here]))}
`
writeOrCompare('migrate', [
  [README, after],
  ...(existsSync('packages/cli') ? [/** @type {const} */ ([OPTIONS, rowsOfCli])] : []),
])

for (const fault of faults) console.log(fault)
const rows = pages.flatMap(({ tables }) => tables.flatMap((table) => table.rows))
const count = (/** @type {string} */ kind) => rows.filter((row) => row.kind === kind).length
console.log(
  `${rows.length} rows: ${count('same')} same, ${count('differs')} differ, ${count('none')} none; ${faults.length} wrong`,
)
if (faults.length > 0) process.exitCode = 1

/** A line for each name of each row, by name. @param {ReturnType<typeof readPages>} pages */
function linesOf(pages) {
  return entriesOf(pages).map(({ line }) => line)
}

/** Each name of each row, by name. @param {ReturnType<typeof readPages>} pages */
function entriesOf(pages) {
  return pages
    .flatMap(({ file, tables }) =>
      tables.flatMap((table) =>
        table.rows.flatMap(({ names, here }) =>
          names.map((name) => ({
            name,
            table,
            file,
            here,
            line: `| \`${name}\` | [${table.package}](${file}#${anchorOf(table)}) | ${linkedFrom(file, here)} |\n`,
          })),
        ),
      ),
    )
    .toSorted(
      (one, other) =>
        compare(one.name.toLowerCase(), other.name.toLowerCase()) || compare(one.line, other.line),
    )
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
