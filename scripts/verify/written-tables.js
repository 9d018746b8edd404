// Tables of a page that a command makes: each stands between `<!-- NAME -->` and `<!-- end -->`, with the day on which it was seen.
import { readFileSync, writeFileSync } from 'node:fs'

/** By name: a line of titles, then rows. The titles before `version`, or else the first, name a row. @typedef {Record<string, readonly (readonly string[])[]>} Tables */

/**
 * Writes the tables into a page, where `--write` is an argument; otherwise prints where the page has others, with exit 1.
 * @param {string} page @param {Tables} tables
 */
export function writeOrCompare(page, tables) {
  const text = readFileSync(page, 'utf8')
  if (process.argv.includes('--write')) return writeFileSync(page, withTables(text, tables))
  const found = differences(text, tables)
  for (const line of found) console.log(line)
  console.log(`${found.length} differences to ${page}`)
  process.exitCode = found.length === 0 ? 0 : 1
}

/** The page with tables, in which outcomes by chance that were seen before stay. @param {string} text @param {Tables} tables */
export function withTables(text, tables) {
  const day = new Date().toISOString().slice(0, 10)
  return Object.entries(tables).reduce((all, [name, [titles = [], ...seen]]) => {
    if (!placeOf(name).test(all)) throw new Error(`the page must have a place for ${name}: <!-- ${name} -->`)
    const there = tableIn(all, name)
    const rows = [titles, ...seen.map((row) => withOutcomes(row, rowOf(row, titles, there) ?? []))]
    return all.replace(
      placeOf(name),
      () => `<!-- ${name} -->\n\nSeen on ${day}.\n\n${written(rows)}\n\n<!-- end -->`,
    )
  }, text)
}

/**
 * A line for each cell that is another. Waits (`5 s`) may differ by a part, as clients add chance to them.
 * @param {string} text @param {Tables} tables
 * @returns {string[]}
 */
export function differences(text, tables) {
  return Object.entries(tables).flatMap(([name, [titles = [], ...rows]]) => {
    const nameOf = (/** @type {readonly string[]} */ row) => nameIn(row, titles)
    const there = tableIn(text, name).slice(1)
    const gone = there.filter((row) => !rows.some((each) => nameOf(each) === nameOf(row)))
    return [
      ...gone.map((row) => `${name}: ${nameOf(row)} stands in the page alone`),
      ...rows.flatMap((row) => {
        const old = rowOf(row, titles, there)
        if (!old) return [`${name}: ${nameOf(row)} is not in the page`]
        return row.flatMap((cell, i) =>
          isAlike(cell, old[i] ?? '')
            ? []
            : [`${name}: ${nameOf(row)}, ${titles[i]}: the page has "${old[i]}", seen was "${cell}"`],
        )
      }),
    ]
  })
}

/** @param {readonly string[]} row @param {readonly string[]} titles */
function nameIn(row, titles) {
  return row.slice(0, Math.max(1, titles.indexOf('version'))).join(', ')
}

/** @param {readonly string[]} row @param {readonly string[]} titles @param {readonly (readonly string[])[]} rows */
function rowOf(row, titles, rows) {
  return rows.find((each) => nameIn(each, titles) === nameIn(row, titles))
}

/** @param {readonly string[]} row @param {readonly string[]} old */
function withOutcomes(row, old) {
  return row.map((cell, i) => (old[i]?.includes(OR) && isAlike(cell, old[i]) ? old[i] : cell))
}

/** The rows of a table as they stand in a page, with its titles. @param {string} text @param {string} name */
export function tableIn(text, name) {
  const lines = (placeOf(name).exec(text)?.[1] ?? '').split('\n').filter((line) => /^\|(?! ?-)/.test(line))
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}

/** Between outcomes of which chance decides. */
const OR = '; or '

/** Whether a page states what was seen: where chance decides, one of its outcomes. @param {string} seen @param {string} stated */
function isAlike(seen, stated) {
  return seen.split(OR).every((one) => stated.split(OR).some((other) => isOutcome(one, other)))
}

/** @param {string} a @param {string} b */
function isOutcome(a, b) {
  const WAIT = /[\d.]+ s\b/
  const secondsOf = (/** @type {string} */ cell) => Number.parseFloat(WAIT.exec(cell)?.[0] ?? '0')
  const [one, other] = [secondsOf(a), secondsOf(b)]
  return a.replace(WAIT, '') === b.replace(WAIT, '') && Math.abs(one - other) <= Math.max(1, 0.4 * other)
}

/** @param {readonly (readonly string[])[]} table */
function written([titles = [], ...rows]) {
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(' | ')} |`
  return [line(titles), `|${'---|'.repeat(titles.length)}`, ...rows.map(line)].join('\n')
}

/** @param {string} name */
function placeOf(name) {
  return new RegExp(`<!-- ${name} -->\\n([^]*?)<!-- end -->`)
}
