import { fixedWindow } from '../../src/index.js'
import type { Answer } from '../../src/stores/store.js'
import { type LuaRedis, luaIsMissing, startLuaRedis } from './lua-redis.js'
import { luaStore } from './lua-store.js'

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe

describeWithLua(missing ?? 'a cancelled booking', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())

  it('is not cancelled again when the next caller has booked the same instant', async () => {
    const policies = [fixedWindow({ limit: 1, window: '1m' })]
    const keyspace = luaStore(redis, { clock: () => 0 }).keyspace('cancelling', policies, () => {})
    const book = async (): Promise<Answer> => keyspace.decide('book', 'k', 1, 60_000_000)
    await book()
    const first = await book()
    expect(await keyspace.cancel(first.booking!)).toBe(true)
    const second = await book()
    expect(second.at).toBe(first.at)
    expect(await keyspace.cancel(first.booking!)).toBe(false)
    expect(await keyspace.cancel(second.booking!)).toBe(true)
  })
})
