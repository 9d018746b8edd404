import { execFileSync } from 'node:child_process'
import { luaIsMissing } from '../../core/test/lua/lua-redis.js'

jest.setTimeout(600_000)

const RUN = ['--import', './scripts/sources/register.js', 'packages/simulation/src/run.ts']
const missing = luaIsMissing()
const testWithLua = missing ? it.skip : it

testWithLua(missing ?? 'fifty seeds have the same traces when they are run again, in another process', () => {
  const digests = (): string =>
    execFileSync(process.execPath, [...RUN, '--schedules', '50', '--digests'], { encoding: 'utf8' })
  const first = digests()
  expect(first).toMatch(/^[0-9a-f]{64}\n$/)
  expect(digests()).toBe(first)
})
