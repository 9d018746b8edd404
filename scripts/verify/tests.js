// Runs tests that `npm test` leaves out: node scripts/verify/tests.js SUBJECT|left-out [ARGUMENT OF JEST...].
import { spawnSync } from 'node:child_process'
import { leftOut } from './left-out.js'

const [subject = '', ...args] = process.argv.slice(2)
const chosen = subject === 'left-out' ? Object.values(leftOut) : [leftOut[subject]]
const tests = chosen.flatMap((group) => group?.tests ?? [])
const { status } = spawnSync(
  process.execPath,
  ['node_modules/jest/bin/jest.js', ...args, '--runTestsByPath', ...tests],
  { stdio: 'inherit' },
)
process.exitCode = status ?? 1
