// Writes the sentences about speed in README from the figures of docs/benchmarks, and compares them with README's (--write
// writes them). No other line of README may say in numbers how fast something is.
import { readFileSync } from 'node:fs'
import { judged } from '../../packages/bench/src/figures/goals.js'
import { load, overviewPanels } from '../../packages/bench/src/report.js'
import { writeOrCompare } from './written.js'

const PAGE = 'README.md'
const BETWEEN = /(?<=<!-- figures -->\n)[^]*(?=<!-- end -->)/
const SPEED = /\d (?:times|M|k|ns|us|%)(?![\w-])|\d[\d.,]* [km]? ?(?:decisions|requests) a second/

const page = readFileSync(PAGE, 'utf8')
const written = page.replace(BETWEEN, () => `\n${sentences().join('\n')}\n\n`)
const elsewhere = page
  .replace(BETWEEN, '')
  .split('\n')
  .filter((line) => SPEED.test(line))
writeOrCompare('figures', [[PAGE, written]])
for (const line of elsewhere) {
  console.error(`${PAGE} says how fast something is, beside no figure of docs/benchmarks: ${line}`)
  process.exitCode = 1
}
console.log(`${sentences().length} sentences about speed`)

function sentences() {
  const [hot, many, redis] = (overviewPanels() ?? []).map(comparison)
  const alone = ratiosOf('redis', /^Redis CPU of a call alone, one policy$/)
  const allowed = ratiosOf('by-hand', /^\w+: CPU of an allowed request$/)
  return [
    `- **In memory, one hot key:** ${hot}`,
    `- **In memory, 100,000 callers:** ${many}`,
    `- **Over Redis, 256 callers:** ${redis} But a call that travels alone takes Redis ${range(alone)} times the CPU of rate-limiter-flexible's.`,
    `- **In a framework:** an allowed request takes ${range(allowed)} times the CPU of one behind a limiter written by hand.`,
  ]
}

/**
 * Whom Sluice is slower than in a panel, and whom it is faster than.
 * @param {import('../../packages/bench/src/report.js').Panel} panel
 */
function comparison({ bars }) {
  const ours = bars.find(({ kind }) => kind === 'sluice')?.value ?? NaN
  const peers = bars.filter(({ kind }) => kind === 'peer').toSorted((one, other) => other.value - one.value)
  const ahead = peers.filter(({ value }) => value > ours)
  const behind = peers
    .filter(({ value }) => value <= ours)
    .map(({ name, value }) => ({ name, ratio: ours / value }))
  const [least] = behind
  const slower = ahead.map(({ name, value }) => `${name} is ${short(value / ours)} times as fast as Sluice`)
  const faster = least && `Sluice is ${short(least.ratio)} times as fast as ${least.name}${andMore(behind)}`
  return `${[...slower, faster].filter(Boolean).join('; ')}.`
}

/** @param {readonly { readonly name: string }[]} behind */
function andMore([, ...others]) {
  return others.length > 0 ? `, and more than that beside ${others.map(({ name }) => name).join(', ')}` : ''
}

/** The judged ratios of a page's goals. @param {string} name @param {RegExp} path */
function ratiosOf(name, path) {
  const { goals = [], run } = load(name) ?? {}
  return goals.filter((goal) => path.test(goal.path)).map((goal) => judged(goal, run?.load ?? NaN).value)
}

/** @param {readonly number[]} ratios */
function range(ratios) {
  const [least, most] = [short(Math.min(...ratios)), short(Math.max(...ratios))]
  return least === most ? least : `${least} to ${most}`
}

/** @param {number} ratio */
function short(ratio) {
  return ratio.toPrecision(2)
}
