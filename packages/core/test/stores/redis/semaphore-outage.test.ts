import { Redis } from 'ioredis'
import { monitor, pause, type RedisServer, startRedis, until } from '@sluice/harness/redis'
import { createLimiter, createSemaphore, gcra, type Semaphore, type Store } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { stepOf } from './permit-steps.js'
import { expectWarnings } from '@sluice/harness/warnings'

jest.setTimeout(60_000)

/** A call ends with a timeout where the client is still connecting at its deadline. */
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
  jest.useRealTimers()
  await store.close()
  client.disconnect()
  await server.stop()
})

/** On a connection that the store makes, unless `options` has a store. */
function open({ limit = 1, deadline = 50, on }: { limit?: number; deadline?: number; on?: Store } = {}) {
  store = on ?? redisStore({ host: server.host, port: server.port })
  return createSemaphore({ name: 'jobs', limit, lease: '1m', deadline, store })
}

/** How a call without patience ended: 'taken', 'none', or an error's code and whether Redis was asked. */
async function attempt(semaphore: Semaphore): Promise<string> {
  try {
    return (await semaphore.acquire('', { maxWait: 0 })).allowed ? 'taken' : 'none'
  } catch (error) {
    const { name, code, message } = error as { name: string; code: string; message: string }
    return `${name} ${code}${message.startsWith('the store was not asked') ? ', not asked' : ''}`
  }
}

/** Calls until the circuit is open. */
async function opened(semaphore: Semaphore): Promise<string> {
  let answer = ''
  await until('the circuit to open', async () => (answer = await attempt(semaphore)).endsWith('not asked'))
  return answer
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
    expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
    const semaphore = open({ on: make() })
    await (await semaphore.acquire()).release()
    await begin()
    expect(await attempt(semaphore)).toMatch(SILENCE)
    expect(await opened(semaphore)).toMatch(SILENCE)
    await end()
    await until('a permit', async () => (await attempt(semaphore)) === 'taken')
  })

  it('makes calls wait no longer than maxWait, and serves them when it is back', async () => {
    expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
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

it('frees a permit that was released while Redis stalled, long before its lease ends', async () => {
  expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
  const semaphore = open()
  const held = await semaphore.acquire()
  server.pause()
  await opened(semaphore)
  await held.release()
  server.resume()
  await until('the permit to be free', async () => (await attempt(semaphore)) === 'taken')
})

it('grants no other call a held permit when Redis is back without its data', async () => {
  expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
  // The time of grace does not end on this clock, however late a busy machine renews the permit.
  const semaphore = open({ on: redisStore({ host: server.host, port: server.port }, { clock: () => 1 }) })
  await semaphore.acquire()
  await server.kill()
  await opened(semaphore)
  await server.restart()
  let answer = ''
  await until('an answer', async () => !(answer = await attempt(semaphore)).startsWith('StoreError'))
  expect(answer).toBe('none')
})

it('waits for a Redis that has not started yet', async () => {
  expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
  await server.kill()
  const semaphore = open()
  expect(await attempt(semaphore)).toMatch(SILENCE)
  const waiting = semaphore.acquire()
  await pause(500)
  await server.restart()
  expect((await waiting).allowed).toBe(true)
})

it('has at most 1,000 calls in flight, and drops the others at their deadline', async () => {
  expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
  const semaphore = open()
  await (await semaphore.acquire()).release() // a permit that is held would be renewed
  const seen = await monitor(server)
  server.pause()
  // Deadlines pass when the clock is set on, and not while a busy machine makes the calls.
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] })
  const calls = Array.from({ length: 1500 }, () => attempt(semaphore))
  await jest.advanceTimersByTimeAsync(50)
  expect(countsOf(await Promise.all(calls))).toEqual({ 'StoreError STORE_TIMEOUT': 1500 })
  await jest.advanceTimersByTimeAsync(50) // those that were to give back what the first 1,000 may have got
  server.resume()
  while (seen.lines.flatMap(stepOf).length < 1000) await client.ping()
  // Answered after everything that was sent before it.
  expect(['taken', 'none']).toContain(await attempt(semaphore))
  jest.useRealTimers()
  expect(countsOf((await seen.stop()).flatMap(stepOf))).toEqual({
    take: 1001,
    release: expect.any(Number), // of the permits that the first 1,000 may have got, many in a call
  })
})

it('frees all of many permits that are released at once', async () => {
  const semaphore = open({ limit: 1500, deadline: 5000 })
  const held = []
  for (let i = 0; i < 15; i++) {
    held.push(...(await Promise.all(Array.from({ length: 100 }, () => semaphore.acquire()))))
  }
  expect(await attempt(semaphore)).toBe('none')
  await Promise.all(held.map((permit) => permit.release()))
  await until('all to be free', async () => (await client.zcount(KEY, PLACES, '+inf')) === 0)
})

it('shares its circuit with the limiters of its store', async () => {
  expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] })
  const semaphore = open()
  const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 100, window: '1s' })], store })
  await Promise.all([limiter.consume('k'), semaphore.acquire('another')])
  server.pause()
  await until('the circuit to open', () => 'allowed' in limiter.decide('k'))
  expect(await attempt(semaphore)).toBe('StoreError STORE_TIMEOUT, not asked')
  server.resume()
  await until('a permit', async () => (await attempt(semaphore)) === 'taken')
  const asked = limiter.decide('k')
  expect(asked).toBeInstanceOf(Promise)
  await asked
})

function countsOf(answers: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1
  return counts
}

const KEY = 'sluice:4:jobs:semaphore:'
const PLACES = 1_099_511_627_776
