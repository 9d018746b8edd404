import { spawnSync } from 'node:child_process'

const node = (...args: readonly string[]): string => {
  const options = ['--import', './scripts/sources/register.js', ...args]
  const { status, stderr } = spawnSync(process.execPath, options, { encoding: 'utf8' })
  return `${status}: ${/^\w*Error: .*/m.exec(stderr)?.[0]}`
}

describe('the command', () => {
  it.each([
    ['--schedules 10x', '--schedules must be a whole number of at least 1, got "10x"'],
    ['--minutes abc', '--minutes must be a whole number of at least 1, got "abc"'],
    ['--from 0', '--from must be a whole number of at least 1, got "0"'],
    ['--least 0', '--least must be a whole number of at least 1, got "0"'],
    ['--seed=', '--seed must be a whole number of at least 1, got ""'],
    ['--mistakes --only nosuch', 'no mistake has "nosuch" in its file or its name'],
  ])('fails where it would run nothing: %s', (args, message) => {
    expect(node('packages/simulation/src/run.ts', ...args.split(' '))).toBe(`1: Error: ${message}`)
  })

  it.each([
    ['no text of its file', 'packages/core/src/index.ts', 'not a text'],
    ['a text that stands there twice', 'packages/core/src/index.ts', 'export'],
    ['a file that no process runs', 'packages/core/src/gone.ts', 'export'],
    ['no text of a script', 'lua/gcra.lua', 'not a text'],
  ])('plants no mistake in %s', (_, file, text) => {
    const change = JSON.stringify({ file, text, broken: '' })
    const script = `import { bundle } from './packages/simulation/src/bundle.ts'\nawait bundle([${change}])`
    const message = `${file} must be in the bundle and hold "${text}" once`
    expect(node('--input-type=module', '--eval', script)).toBe(`1: Error: ${message}`)
  })
})
