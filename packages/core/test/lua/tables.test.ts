import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { playOn } from '../algorithms/timeline.js'
import { luaIsMissing, type LuaRedis, startLuaRedis } from './lua-redis.js'
import { tableStore } from './lua-store.js'

jest.setTimeout(60_000)

/*
 * The tables of the algorithms, played by the scripts under plain Lua. Those of an algorithm that is added are found.
 */
const ALGORITHMS = join(__dirname, '../algorithms')
const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe

describeWithLua(missing ?? 'in plain Lua 5.1', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())

  playOn((options) => tableStore(redis, options))
  for (const file of readdirSync(ALGORITHMS)) if (file.endsWith('.test.ts')) require(join(ALGORITHMS, file))
})
