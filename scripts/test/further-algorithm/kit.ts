import { memoryStore } from '@sluice/core'
import { conformance, mostCost } from '@sluice/testing/internal'
import { luaIsMissing, type LuaRedis, startLuaRedis } from '../../../core/test/lua/lua-redis.js'
import { luaStore } from '../../../core/test/lua/lua-store.js'

const FEW = { sequences: 120, lawRuns: 3 }

conformance('memory', (clock) => memoryStore({ clock }), FEW)

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe
describeWithLua(missing ?? 'in plain Lua 5.1', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())
  conformance('Lua', (clock) => luaStore(redis, { clock }), { ...FEW, mostCost })
})
