// The table of what was measured, and whether the project's bars are met.
import { quantile } from '@sluice/harness/figures'
import { markdownOf } from '../figures/table.js'
import { contenders, OURS } from './contenders.js'
import { PATIENCE_MS } from './load.js'
import { EVERY_MS } from './recovery.js'

/**
 * @typedef {{ readonly title: string, readonly from: number }} Phase Titles in brackets are not judged.
 * @typedef {object} Result
 * @property {string} name
 * @property {readonly Phase[]} phases
 * @property {readonly import('./load.js').Answer[]} answers
 * @property {readonly Omit<import('./load.js').Answer, 'over'>[]} bare
 * @property {readonly number[]} lateMs
 * @property {number | undefined} resumedAfterMs
 * @property {number | undefined} restartedAfterMs
 * @property {number} relapses
 * @property {string | undefined} ended Why the service's process ended, if it did.
 */

/** The deadline and 50 ms, in milliseconds. */
const P99_MS = 50 + 50

/** Later than this the load itself has no time, in milliseconds. */
const BUSY_MS = 20

/** How long limits may take to act again, in milliseconds. */
const RECOVERY_MS = 500

const STATUSES = [200, 429, 500, 503]

/** @param {readonly Result[]} results */
export function printTable(results) {
  const within = `none: no answer within ${PATIENCE_MS / 1000} s`
  const errors = 'refused: 429 below the limit; over: let in above it'
  console.log(`Milliseconds until the answer, and answers by status. ${within}; ${errors}.`)
  console.log('bare: the p99 of a server that limits nothing, beside it\n')
  const times = ['sent', 'bare', 'p50', 'p99', 'max']
  const columns = ['', 'Redis is', ...times, ...STATUSES.map(String), 'none', 'refused', 'over']
  console.log(markdownOf({ title: '', columns, rows: results.flatMap(rowsOf) }))
}

/** @param {Result} result */
function rowsOf(result) {
  return judged(result).map(({ title, answers, bareP99 }) => {
    const count = (/** @type {(answer: import('./load.js').Answer) => boolean} */ test) =>
      String(answers.filter(test).length)
    return [
      result.name,
      title,
      String(answers.length),
      bareP99.toFixed(0),
      ...[0.5, 0.99, 1].map((part) => quantile(times(answers), part).toFixed(0)),
      ...STATUSES.map((status) => count((answer) => answer.status === status)),
      count(({ status }) => status === undefined),
      count(({ status, over }) => status === 429 && !over),
      count(({ status, over }) => status === 200 && over),
    ]
  })
}

/** @param {readonly Result[]} results */
export function printOptions(results) {
  console.log('\nSet beside the limit and the caller:')
  for (const { name, options } of contenders) {
    if (results.some((result) => result.name === name)) console.log(`  ${name}: ${options}`)
  }
}

/**
 * Returns whether ours meet the bars.
 * @param {readonly Result[]} results
 */
export function printVerdicts(results) {
  const how = `asked every ${EVERY_MS} ms: a caller whose state is in Redis alone is denied, a new one is not`
  console.log(`\nLimits act again (${how}):`)
  let met = true
  for (const result of results) {
    const { name, resumedAfterMs, restartedAfterMs, relapses, ended, lateMs } = result
    const worst = Math.max(...judged(result).map(({ answers }) => quantile(times(answers), 0.99)))
    const inTime = judged(result).every(({ answers }) => quantile(times(answers), 0.99) < P99_MS)
    const recovery = Math.max(resumedAfterMs ?? Infinity, restartedAfterMs ?? Infinity)
    const pass = inTime && recovery <= RECOVERY_MS && ended === undefined
    if (name.startsWith(OURS)) met &&= pass
    const late = quantile(lateMs, 0.99)
    console.log(
      `${pass ? 'pass' : 'FAIL'}  ${name}: ${after(resumedAfterMs)} SIGCONT, ${after(restartedAfterMs)} the restart` +
        `${relapses ? ` (and ${relapses} times not later)` : ''}, bar ${RECOVERY_MS}; ` +
        `worst p99 ${worst.toFixed(0)} ms, bar ${P99_MS}; ` +
        `${ended === undefined ? '' : `its process ended, ${ended}; `}` +
        `the load sent 99 % at most ${late.toFixed(0)} ms late` +
        (late > BUSY_MS ? ': the machine is too busy to tell' : ''),
    )
  }
  return met
}

/** @param {number | undefined} ms */
function after(ms) {
  return ms === undefined ? 'not after' : `${ms.toFixed(0)} ms after`
}

/** The answers to what was sent in each phase. @param {Result} result */
function judged({ phases, answers, bare }) {
  return phases.flatMap(({ title, from }, i) => {
    const to = phases[i + 1]?.from ?? Infinity
    const isHere = (/** @type {{ sentAt: number }} */ { sentAt }) => sentAt >= from && sentAt < to
    const bareP99 = quantile(times(bare.filter(isHere)), 0.99)
    return title.startsWith('(') ? [] : [{ title, answers: answers.filter(isHere), bareP99 }]
  })
}

/** @param {readonly { tookMs: number }[]} answers */
function times(answers) {
  return answers.map(({ tookMs }) => tookMs)
}
