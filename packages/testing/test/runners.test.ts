import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

// `verify -- frameworks` has Vitest.
it.each(['node.test.mjs', 'node.test.cjs'])(
  'applications in both kinds of modules are on the fake clock of %s',
  (file) => {
    const args = ['--test', join(__dirname, 'runners', file)]
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([status, /^# pass (\d)$/m.exec(stdout)?.[1]]).toEqual([0, '2'])
  },
  30_000,
)
