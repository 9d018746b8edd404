// What seeing costs: npm run bench -- metrics. CPU of a decision in memory and of a request of Express without a listener, and
// how much more with one: the median over processes. Then the series of a registry after a million keys. Exit 1 when a bar is
// missed. Needs the build.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median } from '@sluice/testing/figures'

const ROUNDS = 5
/** Nanoseconds that one decision may take more; nothing listens in the first. */
const BARS = { nothing: 5, observed: 40, 'top keys': 150 }
/** Share of a request. */
const REQUEST_BAR = 0.03
const WORKLOADS = ['one key, allowed', '10,000 keys in turn, denied', 'all keys new']
const REQUEST = 'a request of Express'
const side = fileURLToPath(new URL('side.js', import.meta.url))

for (const workload of WORKLOADS) {
  for (const [variant, bar] of Object.entries(BARS)) {
    const { off, more } = measure(variant, workload)
    const figure = `${more.toFixed(0).padStart(4)} ns more than ${off.toFixed(0)}, at most ${bar}`
    report(`${workload}, ${variant}`, figure, more <= bar)
  }
}
const { off, more } = measure('observed', REQUEST)
const share = `${((100 * more) / off).toFixed(1)} % more than ${(off / 1000).toFixed(1)} us, at most ${100 * REQUEST_BAR} %`
report(`${REQUEST}, observed`, share, more <= REQUEST_BAR * off)
const [series = NaN, most = 0] = run('series', '')
report(
  'a million keys, 10 limiters of 5 policies',
  `${series} series of decisions, at most ${most}`,
  series <= most,
)

/**
 * @param {string} what
 * @param {string} figure
 * @param {boolean} holds
 */
function report(what, figure, holds) {
  console.log(`${holds ? 'pass' : 'MISS'}  ${what.padEnd(43)} ${figure}`)
  if (!holds) process.exitCode = 1
}

/**
 * @param {string} variant
 * @param {string} workload
 * @returns {{ off: number, more: number }}
 */
function measure(variant, workload) {
  const rounds = Array.from({ length: ROUNDS }, () => run(variant, workload))
  return {
    off: median(rounds.map((round) => round.off)),
    more: median(rounds.map((round) => round.more)),
  }
}

/**
 * @param {string} variant
 * @param {string} workload
 */
function run(variant, workload) {
  return JSON.parse(execFileSync(process.execPath, [side, variant, workload], { encoding: 'utf8' }))
}
