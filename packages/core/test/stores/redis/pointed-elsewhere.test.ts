import {
  command,
  type Proxy,
  type RedisServer,
  type Replica,
  startProxy,
  startRedis,
  startReplica,
} from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { installFakeClock, type InstalledClock } from '@sluice/testing'
import { Redis as Ioredis } from 'ioredis'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient, createClientPool } from 'redis'
import { createLimiter, createSemaphore, gcra, type Limiter } from '../../../src/index.js'
import { type RedisClient, redisStore } from '../../../src/stores/redis/index.js'

/*
 * A failover behind an address: a name, a Service or a proxy passes new connections on to the new master, and those that are open
 * lead to the old one, which is a replica now. docs/test/failover.test.ts runs what the docs say against it.
 */

let master: RedisServer
let next: Replica
let proxy: Proxy
let clock: InstalledClock
const ends: (() => unknown)[] = []

beforeEach(async () => {
  clock = installFakeClock()
  master = await startRedis()
  next = await startReplica(master)
  proxy = await startProxy(master)
})
afterEach(async () => {
  clock.restore()
  for (const end of ends.splice(0).reverse()) await end()
  await proxy.close()
  await Promise.all([master.stop(), next.stop()])
})

const SETTINGS = { maxRetriesPerRequest: 0 }
const clients: readonly [name: string, make: () => Promise<RedisClient>][] = [
  ['ioredis', async () => ofIoredis(new Ioredis({ ...address(), ...SETTINGS }))],
  ['iovalkey', async () => ofIoredis(new Iovalkey({ ...address(), ...SETTINGS }))],
  ['node-redis', async () => ofNodeRedis(createClient({ socket: address() }))],
  ['a pool of node-redis', async () => ofNodeRedis(createClientPool({ socket: address() }))],
]

it.each(clients)(
  'a client that stays at the old master is warned of once, with what to set: %s',
  async (_, make) => {
    expectWarnings(['CLOCK_NOT_FAKED', 'STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
    const client = await make()
    const [one, other] = [limiterOver(client), limiterOver(client)]
    await one.consume('k')
    await failOver()
    const heard: string[] = []
    for (const limiter of [one, other])
      limiter.on('warning', ({ code, message }) => void heard.push(code, message))

    for (let s = 0; s < 2; s++) {
      await refusedCalls(one)
      await clock.pass(1000)
    }
    expect(heard).toEqual([])
    for (let s = 0; s < 3; s++) {
      await refusedCalls(other)
      await clock.pass(1000)
    }
    expect(heard).toEqual(['CLIENT_ON_REPLICA', expect.stringMatching(/reconnectOnError.*node-redis.*URL/)])
  },
)

it('two failovers are no reason for the warning', async () => {
  expectWarnings(['CLOCK_NOT_FAKED', 'STORE_DEGRADED'])
  const limiter = limiterOver(await clients[0]![1]())
  const heard: string[] = []
  limiter.on('warning', ({ code }) => void heard.push(code))
  await limiter.consume('k')
  await failOver()
  await refusedCalls(limiter)
  await clock.pass(61_000)
  await refusedCalls(limiter)
  expect(heard).toEqual([])
})

it('a store of semaphores alone warns the process', async () => {
  const store = redisStore(await clients[0]![1]())
  ends.push(() => store.close())
  const semaphore = createSemaphore({ name: 's', limit: 1, store })
  const warn = jest.spyOn(process, 'emitWarning').mockReturnValue()
  await failOver()
  for (let s = 0; s < 4; s++) {
    await expect(semaphore.acquire('k', { maxWait: 0 })).rejects.toMatchObject({ code: 'STORE_READONLY' })
    await clock.pass(1000)
  }
  const codes = warn.mock.calls.map(([, options]) => (options as { code: string }).code)
  warn.mockRestore()
  expect(codes.filter((code) => code === 'CLIENT_ON_REPLICA')).toHaveLength(1)
})

it('a connection of its own connects to the new master, and no call is decided without it', async () => {
  expectWarnings(['CLOCK_NOT_FAKED'])
  const limiter = limiterOver(`redis://${proxy.host}:${proxy.port}`)
  await limiter.consume('k')
  await failOver()
  const decisions = await Promise.all(Array.from({ length: 50 }, () => limiter.consume('k')))
  expect(decisions.map(({ degraded }) => degraded)).toEqual(decisions.map(() => undefined))
})

async function failOver(): Promise<void> {
  await next.promote()
  await command(master, 'REPLICAOF', next.host, String(next.port))
  proxy.pointTo(next)
}

/** Calls until one of them was refused: a pool has connections to both servers. */
async function refusedCalls(limiter: Limiter): Promise<void> {
  for (let i = 0; i < 50; i++) if ((await limiter.consume('k')).degraded === 'readonly') return
  throw new Error('no call was refused')
}

function limiterOver(client: RedisClient | string): Limiter {
  const store = redisStore(client)
  ends.push(() => store.close())
  return createLimiter({ name: 'l', policies: [gcra({ limit: 1000, window: '1h' })], store, deadline: '30s' })
}

function address(): { host: string; port: number } {
  return { host: proxy.host, port: proxy.port }
}

function ofIoredis(client: RedisClient & { disconnect(): void }): RedisClient {
  ends.push(() => client.disconnect())
  return client
}

type NodeRedisLike = RedisClient & { connect(): Promise<unknown>; destroy(): unknown }

async function ofNodeRedis(client: NodeRedisLike): Promise<RedisClient> {
  ends.push(() => client.destroy())
  await client.connect()
  return client
}
