import type { Store } from '../../../src/index.js'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { redisStore } from '../../../src/stores/redis/index.js'

const START = 1_767_225_600_000_000
let now = START
const clock = () => now
const stores: Store[] = []
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
beforeEach(() => {
  now = START
})
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  await command(server, 'FLUSHALL')
})
afterAll(() => server.stop())

const inRedis = (prefix = 'sluice', options = { clock }): Store =>
  opened(redisStore({ host: server.host, port: server.port }, { prefix, ...options }))
const opened = (store: Store): Store => {
  stores.push(store)
  return store
}

describe('a board in Redis', () => {
  it('is shared by all processes, in one key that expires and carries the format', async () => {
    await inRedis().board!('b').post('a', 'text', 1000)
    expect(await inRedis().board!('b').read()).toEqual(['text'])
    expect(await inRedis('other').board!('b').read()).toEqual([])
    expect(await command(server, 'KEYS', '*')).toEqual(['sluice:4:b:board:'])
    const ttl = await command<number>(server, 'PTTL', 'sluice:4:b:board:')
    expect(ttl).toBeGreaterThan(3_590_000)
    expect(ttl).toBeLessThanOrEqual(3_600_000)
  })

  it('removes the texts of authors that are gone with the next post', async () => {
    const board = inRedis().board!('b')
    for (let i = 0; i < 5; i++) await board.post(`gone ${i}`, 'text', 1000)
    now += 1_000_000
    await board.post('here', 'text', 1000)
    expect(await command(server, 'HLEN', 'sluice:4:b:board:')).toBe(1)
  })

  it('discards what is no board, and posts from a clock that was set back', async () => {
    const board = inRedis().board!('b')
    await command(server, 'SET', 'sluice:4:b:board:', 'something else')
    expect(await board.read()).toEqual([])
    await board.post('a', 'text', 1000)
    expect(await board.read()).toEqual(['text'])
    await command(server, 'HSET', 'sluice:4:b:board:', 'no instant', 'x', `${START + 3_600_000_001}:b`, 'y')
    expect(await board.read()).toEqual(['text'])
    await board.post('a', 'again', 1000)
    expect(await command(server, 'HLEN', 'sluice:4:b:board:')).toBe(1)
  })

  it('reads the time of Redis without a clock of its own', async () => {
    const board = opened(redisStore({ host: server.host, port: server.port })).board!('b')
    await board.post('a', 'text', 60_000)
    expect(await board.read()).toEqual(['text'])
  })
})
