import { install } from '@sinonjs/fake-timers'
import * as ioredis from 'ioredis'
import * as iovalkey from 'iovalkey'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { createLimiter, gcra, type Limiter } from '../../../src/index.js'
import { openIoredis } from '../../../src/stores/redis/connection/own-ioredis.js'
import { SILENCE_MS } from '../../../src/stores/redis/connection/opened.js'
import { redisStore, type RedisStore } from '../../../src/stores/redis/index.js'

jest.setTimeout(30_000)

let server: RedisServer
let store: RedisStore
let limiter: Limiter
beforeAll(async () => {
  server = await startRedis()
  store = redisStore({ host: server.host, port: server.port })
  const policies = [gcra({ limit: 1000, window: '1h' })]
  limiter = createLimiter({ name: 'busy', policies, store, deadline: '300ms' })
  await store.ready()
  await limiter.consume('warm')
})
afterAll(async () => {
  await limiter.close()
  await store.close()
  await server.stop()
})

function busy(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** The event loop stands still for longer than the deadline, and Redis does not. */
describe('a process that is busy for 400 ms', () => {
  it.each([
    ['in the turn in which calls are made', async () => {}],
    ['after they were written', turn],
    ['when their answers have come', async () => (await turn(), await turn())],
  ])('has its calls decided by Redis: %s', async (_, before) => {
    const reasons = new Set<string | undefined>()
    for (let round = 0; round < 3; round++) {
      const calls = Array.from({ length: 300 }, (_, i) => limiter.consume(`key ${i % 30}`))
      await before()
      busy(400)
      for (const { degraded } of await Promise.all(calls)) reasons.add(degraded)
    }
    expect([...reasons]).toEqual([undefined])
  })
})

const KINDS = [
  ['of ioredis', (to: object) => openIoredis(ioredis as never, to)],
  ['of iovalkey', (to: object) => openIoredis(iovalkey as never, to)],
] as const

/** The connection of the store is closed where a reply is due for a second: not where it has come and was not read yet. */
describe('a process that is busy for longer than a peer may be silent', () => {
  it.each(KINDS)('keeps its own connection %s', async (_, open) => {
    const connection = open({ host: server.host, port: server.port })
    await connection.first
    const reply = connection.eval('return ARGV[1]', [Buffer.from('k')], [Buffer.from('reply')])
    await turn()
    busy(SILENCE_MS + 100)
    const answer = await reply.catch(String)
    connection.close()
    expect(String(answer)).toBe('reply')
  })
})

/** They move the timers of the module node:timers too. */
describe('a test that moves fake timers by longer than a peer may be silent', () => {
  it.each(KINDS)('keeps its own connection %s', async (_, open) => {
    const clock = install({ toFake: ['setInterval', 'clearInterval'] })
    const connection = open({ host: server.host, port: server.port })
    await connection.first
    const reply = connection.eval('return ARGV[1]', [Buffer.from('k')], [Buffer.from('reply')])
    clock.tick(10 * SILENCE_MS)
    const answer = await reply.catch(String)
    connection.close()
    clock.uninstall()
    expect(String(answer)).toBe('reply')
  })
})
