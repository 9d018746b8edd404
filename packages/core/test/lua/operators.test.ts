import { withOperators } from '../../src/stores/redis/script/template.js'
import { type LuaRedis, luaIsMissing, startLuaRedis } from './lua-redis.js'

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe

describeWithLua(missing ?? 'operators in place of calls', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())

  const valueOf = (script: string) => redis.run(script, 0, Buffer.of(0), Buffer.of(0)).readDoubleLE()

  it.each([
    'max(a, b)',
    'min(a + b, c) - max(b, c)',
    'floor(c / a) * a',
    'floor(c / 1) * a',
    'ceil(c / a) * a',
    'ceil(-c / a)',
    'max(0, min(max(a, 2 * b), floor((a + c) / 2)))',
    'min(a, call(max(b, c), floor(c / 7)))',
  ])('%s is what it was', (expression) => {
    for (const [a, b, c] of [
      [3, 4, 10],
      [7, 0, 2 ** 52 + 1],
      [1, 3_600_000_000, 1_800_000_000_000_001],
    ]) {
      const written = `return struct.pack('<d', ${expression})`
      const names = `local a, b, c = ${a}, ${b}, ${c} local function call(x, y) return x - y end `
      const calls = 'local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil '
      expect(valueOf(names + withOperators(written))).toBe(valueOf(names + calls + written))
    }
  })

  it('leave a call whose argument is a call, because it would be evaluated twice', () => {
    expect(withOperators('max(a, read(b))')).toBe('math.max(a, read(b))')
  })
})
