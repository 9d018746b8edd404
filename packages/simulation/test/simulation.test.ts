import { execFileSync } from 'node:child_process'
import { luaIsMissing } from '../../core/test/lua/lua-redis.js'

jest.setTimeout(120_000)

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe

/** Runs plans in a process of its own, and returns what it prints. */
const simulate = (...args: readonly string[]): string =>
  execFileSync(
    process.execPath,
    ['--import', './scripts/sources/register.js', 'packages/simulation/src/run.ts', ...args],
    { encoding: 'utf8' },
  )

describeWithLua(missing ?? 'a simulated fleet', () => {
  it('keeps every law in the plans of the first seeds', () => {
    expect(simulate('--schedules', '5')).toMatch(/^5 schedules /)
  })

  it('is the same to the byte when a seed is run again', () => {
    const digests = (): string => simulate('--schedules', '2', '--digests')
    expect(digests()).toBe(digests())
  })
})
