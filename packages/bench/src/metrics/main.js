// The cost of listeners: npm run bench -- metrics [WORD...]. CPU of a decision in memory and of a request of Express without a
// listener, and how much more with one: the median over processes, with its 95 % interval, which decides. Then the series of a
// registry after a million keys. Words choose rows by their names. Exit 1 unless all bars are shown to be met. Needs the build.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { bootstrapInterval, median } from '@sluice/harness/figures'
import { report } from '../figures/beside.js'
import { verdictOf } from '../figures/verdict.js'

/** Processes of a row: as many more as it takes until the interval lies on one side of the bar. */
const LEAST_PROCESSES = 6
const MOST_PROCESSES = 20
/** Nanoseconds that one decision may take more; nothing listens in the first, and what is observed has top keys too: 40 ns beside these. */
const BARS = { nothing: 5, observed: 190, 'top keys': 150 }
/** The same, `observed` and with a key that was never called: its row in memory is what the cache holds then. */
const NEW_KEY_OBSERVED = 210
/** Share of a request. */
const REQUEST_BAR = 0.03
const WORKLOADS = ['one key, allowed', '10,000 keys in turn, denied', 'all keys new']
const REQUEST = 'a request of Express'
const side = fileURLToPath(new URL('side.js', import.meta.url))
const words = process.argv.slice(2)

/** @typedef {{ off: number, more: number }} Round Of one process, in nanoseconds. */

for (const workload of WORKLOADS)
  for (const [variant, bound] of Object.entries(BARS)) {
    const isOfNewKeys = workload === 'all keys new' && variant === 'observed'
    measure(workload, variant, isOfNewKeys ? NEW_KEY_OBSERVED : bound, ({ more }) => more, inNs)
  }
measure(REQUEST, 'nothing', REQUEST_BAR, ({ more, off }) => more / off, inPercent)
measure(REQUEST, 'observed', REQUEST_BAR, ({ more, off }) => more / off, inPercent)
if (isWanted('a million keys')) {
  const { decisions, mostDecisions, all, most } = run('series', '')
  const figure = `${decisions} series of decisions, at most ${mostDecisions}; ${all} in all, at most ${most}`
  const isMet = decisions <= mostDecisions && all <= most
  report('a million keys, 10 limiters of 5 policies', figure, isMet ? 'met' : 'missed')
}

/**
 * @param {string} workload
 * @param {string} variant
 * @param {number} bound
 * @param {(round: Round) => number} valueOf
 * @param {(value: number) => string} text
 */
function measure(workload, variant, bound, valueOf, text) {
  const title = `${workload}, ${variant}`
  if (!isWanted(title)) return
  /** @type {Round[]} */
  const rounds = []
  /** @type {import('../figures/verdict.js').Verdict} */
  let verdict = 'not shown'
  let interval = ''
  while (rounds.length < LEAST_PROCESSES || (verdict === 'not shown' && rounds.length < MOST_PROCESSES)) {
    rounds.push(run(variant, workload))
    const [low, high] = bootstrapInterval(
      rounds.map((round) => [round]),
      (sample) => median(sample.map(valueOf)),
    )
    verdict = verdictOf([low, high], { sense: 'at most', bound })
    interval = `${text(low)} to ${text(high)}`
  }
  const off = median(rounds.map((round) => round.off))
  const more = text(median(rounds.map(valueOf)))
  const figure = `${more} more (${interval}, ${rounds.length} processes) than ${off.toFixed(0)} ns, at most ${text(bound)}`
  report(title, figure, verdict)
}

/** @param {string} title */
function isWanted(title) {
  return words.length === 0 || words.some((word) => title.includes(word))
}

/** @param {number} value */
function inNs(value) {
  return `${value.toFixed(0)} ns`
}

/** @param {number} value */
function inPercent(value) {
  return `${(100 * value).toFixed(1)} %`
}

/**
 * @param {string} variant
 * @param {string} workload
 */
function run(variant, workload) {
  return JSON.parse(execFileSync(process.execPath, [side, variant, workload], { encoding: 'utf8' }))
}
