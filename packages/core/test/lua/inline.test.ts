import { withInlined } from '../../src/stores/redis/inline.js'
import { type LuaRedis, luaIsMissing, startLuaRedis } from './lua-redis.js'

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe

const MODULES = `
local seen = 0
local function half(a)
  if a % 2 == 0 then
    return a / 2
  end
  return a
end
local function both(a, b)
  local sum = half(a)
  a = sum + b
  return a, sum
end
local function first_even(from, to)
  for i = from, to do
    if i % 2 == 0 then
      return i
    end
  end
  return 0
end
local function note(a)
  if a < 0 then
    return
  end
  seen = seen + a
end
local function last_of(a)
  return half(a)
end
local alias_of = half
`

describeWithLua(missing ?? 'bodies in place of calls', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())

  const answer = (script: string) => redis.run(script, 0, Buffer.of(0), Buffer.of(0)).readDoubleLE()

  it.each([
    ['a function that returns early', 'local a = half(8)\nlocal b = half(a + 1)', 'a * 100 + b', []],
    [
      'names of the caller that the function has too',
      'local a, sum = 3, 4\na, sum = both(sum, a)',
      'a * 10 + sum',
      [],
    ],
    [
      'an argument that is changed by the function only',
      'local b, c = 6, 1\nlocal x, y = both(b, c)',
      'b + x + y',
      [],
    ],
    ['a function for what it does', 'note(5)\nnote(-3)\nnote(2)', 'seen', []],
    ['a call that is all that is returned', 'local a = last_of(14)', 'a', []],
    ['another name of a function', 'local a = alias_of(6)', 'a', []],
    ['a function that returns out of a loop', 'local a = first_even(3, 9)', 'a', ['first_even']],
    ['a call in the middle of a line', 'local a = 1 + half(8)', 'a', ['half']],
  ])('do the same: %s', (_, body, value, kept) => {
    const script = `${body}\nreturn struct.pack('<d', ${value})\n`
    const inlined = withInlined(MODULES, script)
    expect(answer(inlined)).toBe(answer(MODULES + script))
    expect([...inlined.matchAll(/^local function (\w+)/gm)].map(([, name]) => name)).toEqual(kept)
  })
})
