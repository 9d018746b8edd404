// The mistakes of `npm run verify -- sabotage`, one mechanism broken in each. They stand beside the rows of the fault matrix
// that catch them, as changes in ROW.mistakes.diff. Those that two faults must meet for stand beside the simulation, which finds them:
//
//   # the mechanism: the mistake
//   --- the file
//   - text that stands exactly once in it
//   + text that takes its place
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** @typedef {{ mechanism: string, mistake: string, row: number, file: string, text: string, broken: string }} Mistake */

/** The mistakes that rows of the fault matrix catch. */
export const mistakes = mistakesIn('packages/faults/src/rows')

/** The mistakes that do harm only where two faults meet. They have no row. */
export const pairs = mistakesIn('packages/simulation/src')

/** @param {string} folder @returns {readonly Mistake[]} */
function mistakesIn(folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.mistakes.diff'))
    .toSorted()
    .flatMap((name) =>
      readFileSync(`${folder}/${name}`, 'utf8')
        .split(/^(?=# )/m)
        .map((change) => parse(name, change)),
    )
}

/**
 * @param {string} name Of the file of a row.
 * @param {string} change
 * @returns {Mistake}
 */
function parse(name, change) {
  const [, mechanism, mistake, file, removed, added] =
    /^# (.+?): (.+)\n--- (.+)\n((?:-.*\n)+)((?:\+.*\n)+)\s*$/.exec(change) ?? []
  if (!mechanism || !mistake || !file || !removed || !added)
    throw new Error(
      `${name} has a change that is not written as scripts/verify/sabotage/mistakes.js says:\n${change}`,
    )
  return {
    mechanism,
    mistake,
    row: Number.parseInt(name.slice(4), 10),
    file,
    text: textOf(removed),
    broken: textOf(added),
  }
}

/** Without the sign and the space that each line begins with. @param {string} lines */
function textOf(lines) {
  return lines.replace(/^[-+] ?/gm, '').slice(0, -1)
}

/**
 * The reasons why mistakes cannot be made: each text that does not stand exactly once in its file.
 * @param {readonly Mistake[]} among
 * @returns {string[]}
 */
export function misplaced(among = [...mistakes, ...pairs]) {
  return among.flatMap(({ file, text }) => {
    const found = readFileSync(file, 'utf8').split(text).length - 1
    return found === 1 ? [] : [`${file} must hold ${JSON.stringify(text)} once, got ${found}`]
  })
}
