// Runs the conformance kit, the tests of postgresStore and its row of the fault matrix on every version of Postgres, and prints a
// line for each: npm run verify -- postgres-versions [VERSION...]. Exit 1 when one fails. The servers come from npm, into this
// folder alone; PgBouncer comes from the system.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '../../..')
const VERSIONS = ['15', '16', '17', '18']
const ROW = '41'
/** Random sequences of the conformance kit, unless the environment has another number. */
const RUNS = '1000'

const asked = process.argv.slice(2)
for (const version of asked.length > 0 ? asked : VERSIONS) {
  const bin = join(HERE, `node_modules/postgres-${version}/native/bin`)
  const env = { CONFORMANCE_RUNS: RUNS, ...process.env, SLUICE_POSTGRES_BIN: bin }
  const { output: name } = await run(join(bin, 'postgres'), ['--version'], env)
  const tests = await tested(env)
  const faults = await run(
    process.execPath,
    ['--import', './scripts/sources/register.js', 'packages/faults/src/run.ts', ROW],
    env,
  )
  const isRight = tests.isRight && faults.isRight
  if (!isRight) process.exitCode = 1
  console.log(`${isRight ? 'pass' : 'FAIL'}  ${name.trim()}: ${tests.figure}; row ${ROW}:`)
  console.log(faults.output.trimEnd().replace(/^/gm, '      '))
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ isRight: boolean, figure: string }>}
 */
async function tested(env) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-versions-'))
  const file = join(folder, 'jest.json')
  const args = ['node_modules/jest/bin/jest.js', 'packages/postgres/test', '--json', `--outputFile=${file}`]
  const { isRight, output } = await run(process.execPath, args, env)
  if (!isRight) console.error(output)
  try {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(file, 'utf8'))
    return { isRight, figure: `${numPassedTests} tests passed, ${numFailedTests} failed` }
  } catch {
    return { isRight: false, figure: 'the tests could not run' }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ isRight: boolean, output: string }>}
 */
function run(program, args, env) {
  return new Promise((resolve) => {
    execFile(program, args, { cwd: ROOT, env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      resolve({ isRight: !error, output: error ? `${stdout}\n${stderr}` : stdout }),
    )
  })
}
