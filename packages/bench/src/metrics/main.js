// What seeing costs: npm run bench -- metrics. CPU of a decision in memory without a listener, observed, and with top keys
// counted, each in fresh processes that take turns; the extra is the median over the rounds. Then the series of a registry
// after a million keys. Exit 1 when a bar is missed. Needs the build.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median } from '@sluice/testing/figures'

const ROUNDS = 7
/** Nanoseconds that one decision may take more. */
const BARS = { observed: 40, 'top keys': 150 }
const WORKLOADS = ['one key, allowed', '10,000 keys in turn, denied', 'all keys new']
const side = fileURLToPath(new URL('side.js', import.meta.url))

for (const workload of WORKLOADS) {
  /** @type {Record<string, number[]>} */
  const times = { off: [], observed: [], 'top keys': [] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [variant, all] of Object.entries(times)) all.push(run(variant, workload))
  }
  const off = median(times.off ?? [])
  console.log(`${workload}: ${off.toFixed(0)} ns a decision without a listener`)
  for (const [variant, bar] of Object.entries(BARS)) {
    const extra = median(times[variant] ?? []) - off
    console.log(`  ${variant.padEnd(9)} ${extra.toFixed(0).padStart(4)} ns more, at most ${bar}`)
    if (extra > bar) process.exitCode = 1
  }
}
const [series = NaN, most = 0] = run('series', 'all keys new', true)
console.log(`a million keys, 10 limiters of 5 policies: ${series} series of decisions, at most ${most}`)
if (!(series <= most)) process.exitCode = 1

/**
 * @overload
 * @param {string} variant
 * @param {string} workload
 * @returns {number}
 */
/**
 * @overload
 * @param {string} variant
 * @param {string} workload
 * @param {true} several
 * @returns {number[]}
 */
/**
 * @param {string} variant
 * @param {string} workload
 * @param {boolean} [several]
 */
function run(variant, workload, several) {
  const output = JSON.parse(execFileSync(process.execPath, [side, variant, workload], { encoding: 'utf8' }))
  return several ? output : output[0]
}
