import { Redis } from 'ioredis'
import { createLimiter, createSemaphore, gcra, type Semaphore, type Store } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis/index.js'
import { type RedisServer, startRedis } from './servers/redis-server.js'
import { pause, until } from './servers/until.js'

jest.setTimeout(60_000)

/** A call is over at the deadline where the client goes on connecting by then. */
const SILENCE = /^StoreError STORE_(TIMEOUT|UNAVAILABLE)/

let server: RedisServer
let store: Store
let client: Redis
beforeEach(async () => {
  server = await startRedis()
  client = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
})
afterEach(async () => {
  await store.close()
  client.disconnect()
  await server.stop()
})

/** On a connection of the store's own unless it says otherwise. */
function open({ limit = 1, deadline = 50, on }: { limit?: number; deadline?: number; on?: Store } = {}) {
  store = on ?? redisStore({ host: server.host, port: server.port })
  return createSemaphore({ name: 'jobs', limit, lease: '1m', deadline, store })
}

/** What a call came to that waits for nobody: 'taken', 'none', or an error's code and whether Redis was asked. */
async function attempt(semaphore: Semaphore): Promise<string> {
  try {
    return (await semaphore.acquire('', { maxWait: 0 })).allowed ? 'taken' : 'none'
  } catch (error) {
    const { name, code, message } = error as { name: string; code: string; message: string }
    return `${name} ${code}${message.startsWith('the store was not asked') ? ', not asked' : ''}`
  }
}

/** Calls until nothing is sent any more. */
async function opened(semaphore: Semaphore): Promise<string> {
  let told = ''
  await until(
    'the circuit to open',
    async () => (told = await attempt(semaphore)).endsWith('not asked'),
    5000,
  )
  return told
}

const outages: readonly [string, () => unknown, () => unknown][] = [
  ['stands still', () => server.pause(), () => server.resume()],
  ['is dead', () => server.kill(), () => server.restart()],
]

describe.each(outages)('a Redis that %s', (_, begin, end) => {
  it.each([
    ['its own connection', () => redisStore({ host: server.host, port: server.port })],
    ['a client', () => redisStore(client)],
  ])('is soon not asked any more, and is again when it is back, over %s', async (_, make) => {
    const semaphore = open({ on: make() })
    await (await semaphore.acquire()).release()
    await begin()
    expect(await attempt(semaphore)).toMatch(SILENCE)
    expect(await opened(semaphore)).toMatch(SILENCE)
    await end()
    await until('a place', async () => (await attempt(semaphore)) === 'taken', 5000)
  })

  it('makes callers wait no longer than they want to, and lets them in when it is back', async () => {
    const semaphore = open()
    await (await semaphore.acquire()).release()
    await begin()
    await opened(semaphore)
    const patient = semaphore.acquire('', { maxWait: '30s' })
    await expect(semaphore.acquire('', { maxWait: 150 })).rejects.toMatchObject({ name: 'StoreError' })
    await end()
    expect((await patient).allowed).toBe(true)
  })
})

it('frees a place that was released while Redis stood still, long before its lease ends', async () => {
  const semaphore = open()
  const held = await semaphore.acquire()
  server.pause()
  await opened(semaphore)
  await held.release()
  server.resume()
  await until('the place to be free', async () => (await attempt(semaphore)) === 'taken', 5000)
})

it('lets nobody have the place of a holder when Redis is back without its data', async () => {
  const semaphore = open()
  await semaphore.acquire()
  await server.kill()
  await opened(semaphore)
  await server.restart()
  let told = ''
  await until('an answer', async () => !(told = await attempt(semaphore)).startsWith('StoreError'), 5000)
  expect(told).toBe('none')
})

it('waits for a Redis that is not there yet', async () => {
  await server.kill()
  const semaphore = open()
  expect(await attempt(semaphore)).toMatch(SILENCE)
  const waiting = semaphore.acquire()
  await pause(500)
  await server.restart()
  expect((await waiting).allowed).toBe(true)
})

it('has 1,000 calls under way at most, and drops the others at their deadline', async () => {
  const semaphore = open({ limit: 2000 })
  await semaphore.acquire()
  server.pause()
  const calls = Array.from({ length: 1500 }, () => attempt(semaphore))
  const told = await Promise.all(calls)
  expect(told.filter((what) => what === 'StoreError STORE_TIMEOUT')).toHaveLength(1500)
  server.resume()
})

it('gets back all of many places that are released at once', async () => {
  const semaphore = open({ limit: 1500, deadline: 5000 })
  const held = []
  for (let i = 0; i < 15; i++) {
    held.push(...(await Promise.all(Array.from({ length: 100 }, () => semaphore.acquire()))))
  }
  expect(await attempt(semaphore)).toBe('none')
  await Promise.all(held.map((permit) => permit.release()))
  await until('all to be free', async () => (await client.zcount(KEY, PLACES, '+inf')) === 0, 5000)
})

it('knows from the limiters of its store that Redis does not answer, and they know from it', async () => {
  const semaphore = open()
  const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 100, window: '1s' })], store })
  await Promise.all([limiter.consume('k'), semaphore.acquire('another')])
  server.pause()
  await until('the circuit to open', () => !(limiter.decide('k') instanceof Promise), 5000)
  expect(await attempt(semaphore)).toBe('StoreError STORE_TIMEOUT, not asked')
  server.resume()
  await until('a place', async () => (await attempt(semaphore)) === 'taken', 5000)
  const asked = limiter.decide('k')
  expect(asked).toBeInstanceOf(Promise)
  await asked
})

const KEY = 'sluice:1:jobs:semaphore:'
const PLACES = 1_099_511_627_776
