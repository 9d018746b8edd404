// npm test [-- ARGUMENT OF JEST...]. Leaves out what takes long or needs a server beside one Redis, and what needs Redis
// where there is none, and says what that is. Tests whose file is named are run whatever they are; a folder names all of its own.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { missingProgram } from './programs.js'
import { build, install } from './subjects.js'
import { FEW_RUNS, leftOut } from './verify/left-out.js'

const missing = missingProgram('redis')
const missingPostgres = missingProgram('postgres')
build()
const args = process.argv.slice(2)
const isBroad = args.every((arg) => arg.startsWith('-') || (existsSync(arg) && statSync(arg).isDirectory()))
for (const arg of args) if (existsSync(arg)) install(dirname(relative('.', arg)))
const groups = isBroad ? Object.entries(leftOut) : []
const skipped = groups.flatMap(([, { tests, shortened }]) => (shortened ? [] : tests))
const ignored = ['/node_modules/', '/dist/', ...skipped.map((path) => `/${path}$`)]

const { status } = spawnSync(
  process.execPath,
  ['node_modules/jest/bin/jest.js', ...args, '--testPathIgnorePatterns', ...ignored],
  {
    stdio: 'inherit',
    env: {
      ...(isBroad && FEW_RUNS),
      ...process.env,
      ...((missing ?? missingPostgres) && { SLUICE_WITHOUT_REDIS: 'true' }),
    },
  },
)
for (const [name, { about, tests, shortened }] of groups) {
  const fewer = Object.entries(FEW_RUNS).map(([variable, runs]) => `${variable}=${runs}`)
  const what = shortened
    ? `shortened by ${fewer.join(' ')}`
    : `skipped ${tests.length} ${tests.length === 1 ? 'file' : 'files'}`
  console.log(`${what}: ${about} (npm run verify -- ${name})`)
}
if (missing) console.log(`skipped every test that starts a Redis server: ${missing}`)
if (missingPostgres) console.log(`skipped every test that starts a Postgres: ${missingPostgres}`)
process.exitCode = status ?? 1
