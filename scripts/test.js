// npm test [-- ARGUMENT OF JEST...]. Leaves out what takes long or needs a server beside one Redis, and says what that is;
// tests that are named by a path are run whatever they are.
import { spawnSync } from 'node:child_process'
import { prepare } from './prepare.js'
import { FEW_RUNS, leftOut } from './verify/left-out.js'

prepare(['redis', 'build'])
const args = process.argv.slice(2)
const isAll = args.every((arg) => arg.startsWith('-'))
const groups = isAll ? Object.entries(leftOut) : []
const skipped = groups.flatMap(([, { tests, shortened }]) => (shortened ? [] : tests))
const ignored = ['/node_modules/', '/dist/', ...skipped.map((path) => `/${path}$`)]

const { status } = spawnSync(
  process.execPath,
  ['node_modules/jest/bin/jest.js', ...args, '--testPathIgnorePatterns', ...ignored],
  {
    stdio: 'inherit',
    env: { ...(isAll && FEW_RUNS), ...process.env },
  },
)
for (const [name, { about, tests, shortened }] of groups) {
  const fewer = Object.entries(FEW_RUNS).map(([variable, runs]) => `${variable}=${runs}`)
  const what = shortened
    ? `shortened by ${fewer.join(' ')}`
    : `skipped ${tests.length} ${tests.length === 1 ? 'file' : 'files'}`
  console.log(`${what}: ${about} (npm run verify -- ${name})`)
}
process.exitCode = status ?? 1
