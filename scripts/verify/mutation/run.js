// Makes deliberate mistakes in the algorithms, one at a time, and counts how many the tests catch: npm run verify --
// mutation. Files, or lines of them, may be named: npm run verify -- mutation packages/core/src/algorithms/debt/debt.ts:20-40.
// In stages, because the conformance kit takes longest: what the tables miss is tried on the leases' tests and on the kit, what a
// short run of the kit misses on a longer one. Prints who survived; exit 1 when less than 96 % were caught.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../temporary-folder.js'

const STRYKER = 'scripts/verify/mutation/node_modules/@stryker-mutator/core/bin/stryker.js'
const LEAST_CAUGHT = 0.96
const SOURCES = process.argv.length > 2 ? process.argv.slice(2) : ['packages/core/src/algorithms/**/*.ts']
const TABLES = [
  'algorithms/*.test.ts',
  'limiter/input.test.ts',
  'stores/memory/corrections.test.ts',
  'stores/bytes/keyspace-over.test.ts',
]
const LEASES = ['leases/booked-policies.test.ts', 'leases/leases.test.ts', 'leases/bound.test.ts']
const KIT = ['stores/memory/store.conformance.test.ts']
/** `timeoutMs` comes on top of what the tests take: machines are shared, and only one that never ends may reach it. */
const STAGES = [
  { tests: TABLES, coverage: 'perTest', runs: 0, timeoutMs: 12_000 },
  { tests: LEASES, coverage: 'off', runs: 10, timeoutMs: 30_000 },
  { tests: KIT, coverage: 'off', runs: 125, timeoutMs: 30_000 },
  { tests: KIT, coverage: 'off', runs: 2000, timeoutMs: 30_000 },
]

/** RuntimeError: with the mistake a test file cannot be loaded, or the process of the tests dies. */
const CAUGHT = new Set(['Killed', 'Timeout', 'RuntimeError'])

/** @typedef {{ file: string, line: number, text: string, range: string, caught: boolean }} Mistake */

const folder = temporaryFolder('mutation')
/** @type {Map<string, Mistake>} */
const mistakes = new Map()
for (const stage of STAGES) {
  const alive = [...mistakes.values()].filter(({ caught }) => !caught)
  const mutate = mistakes.size === 0 ? SOURCES : [...new Set(alive.map(({ range }) => range))]
  if (mutate.length === 0) break
  for (const [id, mistake] of run(stage, mutate)) {
    mistakes.set(id, { ...mistake, caught: mistake.caught || mistakes.get(id)?.caught === true })
  }
}
const all = [...mistakes.values()]
const survivors = all.filter(({ caught }) => !caught)
for (const { file, line, text } of survivors) console.log(`survived  ${file}:${line}  ${text}`)
const share = (all.length - survivors.length) / all.length
console.log(`${all.length - survivors.length} of ${all.length} caught: ${(100 * share).toFixed(1)} %`)
process.exitCode = share >= LEAST_CAUGHT ? 0 : 1

/**
 * @param {typeof STAGES[number]} stage
 * @param {string[]} mutate
 * @returns {Map<string, Mistake>}
 */
function run({ tests, coverage, runs, timeoutMs }, mutate) {
  const [config, fileName] = [join(folder, 'stryker.json'), join(folder, 'report.json')]
  const testMatch = tests.map((name) => `<rootDir>/packages/core/test/${name}`)
  const options = {
    ...JSON.parse(readFileSync('scripts/verify/mutation/stryker.json', 'utf8')),
    mutate,
    jest: { configFile: 'jest.config.js', config: { testMatch } },
    coverageAnalysis: coverage,
    jsonReporter: { fileName },
    timeoutMS: timeoutMs,
  }
  writeFileSync(config, JSON.stringify(options))
  const env = { ...process.env, CONFORMANCE_RUNS: String(runs), LEASE_RUNS: String(runs) }
  const { status } = spawnSync(process.execPath, [STRYKER, 'run', config], { stdio: 'inherit', env })
  if (status !== 0) throw new Error(`stryker ended with ${status}`)
  return mistakesIn(JSON.parse(readFileSync(fileName, 'utf8')))
}

/** @param {{ files: Record<string, { source: string, mutants: any[] }> }} report */
function mistakesIn(report) {
  const mistakes = new Map()
  for (const [file, { source, mutants }] of Object.entries(report.files)) {
    for (const { location, mutatorName, replacement, status } of mutants) {
      if (status === 'CompileError' || status === 'Ignored') continue
      const { start, end } = location
      const range = `${file}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`
      const text = `${source.split('\n')[start.line - 1]?.trim()}  =>  ${replacement}`
      const caught = CAUGHT.has(status)
      mistakes.set(`${range} ${mutatorName} ${replacement}`, { file, line: start.line, text, range, caught })
    }
  }
  return mistakes
}
