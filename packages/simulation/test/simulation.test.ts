import { execFileSync } from 'node:child_process'
import { luaIsMissing } from '../../core/test/lua/lua-redis.js'
import { KEPT } from '../src/kept.js'

jest.setTimeout(120_000)

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe

/** Runs plans in a process of its own, and returns what it prints. Throws where one breaks a law. */
const simulate = (...args: readonly string[]): string =>
  execFileSync(
    process.execPath,
    ['--import', './scripts/sources/register.js', 'packages/simulation/src/run.ts', ...args],
    { encoding: 'utf8' },
  )

describeWithLua(missing ?? 'a simulated fleet', () => {
  it('keeps every law in the plans that once broke one', () => {
    const seeds = [...simulate('--kept').matchAll(/^seed (\d+): /gm)].map(([, seed]) => seed)
    expect(seeds).toEqual(Object.keys(KEPT))
  })

  it('is the same to the byte when its seed is run again', () => {
    const digests = (): string => simulate('--schedules', '1', '--digests')
    expect(digests()).toBe(digests())
  })
})
