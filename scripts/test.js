// npm test [-- ARGUMENTS OF JEST]
import { spawnSync } from 'node:child_process'
import { prepare } from './prepare.js'

prepare(['redis', 'build'])
const { status } = spawnSync(process.execPath, ['node_modules/jest/bin/jest.js', ...process.argv.slice(2)], {
  stdio: 'inherit',
})
process.exitCode = status ?? 1
