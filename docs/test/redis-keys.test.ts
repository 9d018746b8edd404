import { createLimiter, createSemaphore, gcra, type Limiter, slidingLog } from '@sluice/core'
import { redisStore, type RedisStore } from '@sluice/core/redis'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { apiKeyKey, ipKey, userKey } from '@sluice/http'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/*
 * The table of keys in docs/operations.md: each is made as its row says, and DEL does to it what the row says.
 */

const PAGE = readFileSync(resolve(__dirname, '../operations.md'), 'utf8')
const SECTION = /^## Keys in Redis\n([^]*?)\n## /m.exec(PAGE)![1]!
const rows = [...SECTION.matchAll(/^\| (.+?) \| `(.+?)` \| (.+?) \|$/gm)].map(
  ([, of = '', key = '', del = '']) => ({ of, key, del }),
)
const policies = [slidingLog({ limit: 100, window: '1m' })]

let server: RedisServer
beforeAll(async () => void (server = await startRedis()))
afterAll(() => server.stop())
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await command(server, 'FLUSHALL')
})

function storeOf(groups?: number): RedisStore {
  const given = { denialCache: false, ...(groups !== undefined && { groups }) } as const
  const store = redisStore(`redis://${server.host}:${server.port}`, given)
  closing.push(() => store.close())
  return store
}

function limiterOf(store = storeOf(), list = policies): Limiter {
  const settings = { store, deadline: '10s', onStoreError: 'throw' } as const
  const limiter = createLimiter({ name: 'api', policies: list, ...settings })
  closing.push(() => limiter.close())
  return limiter
}

/** Uses a key up, has the key deleted, and expects that its caller begins with a full allowance, and without the block. */
async function asReset(limiter: Limiter, key: string, inRedis: string): Promise<void> {
  await limiter.charge(key, { cost: 100 })
  await limiter.block(key, '1h')
  expect((await command<string[]>(server, 'KEYS', '*')).toSorted()).toEqual([RECORDS, inRedis].toSorted())
  await command(server, 'DEL', inRedis)
  expect(await limiter.peek(key)).toMatchObject({ allowed: true, remaining: 100 })
  expect(await limiter.overrides()).toMatchObject([{ kind: 'block', key }]) // the record stays
  await limiter.unblock(key)
  await command(server, 'DEL', RECORDS)
}
const RECORDS = 'sluice:4::records:'

/** Makes the key of a row, and checks what DEL does to it. */
const checks: Readonly<Record<string, (key: string) => Promise<void>>> = {
  'an IPv4 address': (key) => asReset(limiterOf(), ipKey('203.0.113.7'), key),
  'a network of IPv6': (key) => asReset(limiterOf(), ipKey('2001:db8::1'), key),
  'a user': (key) => asReset(limiterOf(), userKey('ann'), key),
  'a user whose id has a colon': (key) => asReset(limiterOf(), userKey('a:b'), key),
  'an API key': (key) => asReset(limiterOf(), apiKeyKey('s3cret'), key),
  'a key of more than 128 characters': (key) => asReset(limiterOf(), 'x'.repeat(129), key),
  'two policies': (key) => {
    const list = [gcra({ limit: 100, window: '1s' }), slidingLog({ limit: 100, window: '1h' })]
    return asReset(limiterOf(storeOf(), list), userKey('ann'), key)
  },
  'a store with `groups: 16`': (key) => asReset(limiterOf(storeOf(16)), userKey('ann'), key),
  'the records of all limiters': async (key) => {
    const limiter = limiterOf()
    await limiter.override('k', { exempt: true, until: '1h', reason: 'r', by: 'b' })
    expect(await command(server, 'EXISTS', key)).toBe(1)
    await command(server, 'DEL', key)
    expect(await limiter.overrides()).toEqual([])
  },
  'what processes post of top keys': async (key) => {
    const board = storeOf().board!('top-keys')
    await board.post('one', 'text', 60_000)
    expect(await command(server, 'EXISTS', key)).toBe(1)
    await command(server, 'DEL', key)
    expect(await board.read()).toEqual([])
    await board.post('one', 'text', 60_000)
    expect(await board.read()).toEqual(['text'])
  },
  "the semaphore 'jobs'": async (key) => {
    const semaphore = createSemaphore({ name: 'jobs', limit: 1, store: storeOf() })
    closing.push(() => semaphore.close())
    const permit = await semaphore.acquire()
    if (!permit.allowed) throw new Error('expected a permit')
    expect(await command(server, 'EXISTS', key)).toBe(1)
    await command(server, 'DEL', key)
    const second = await semaphore.acquire('', { maxWait: 0 })
    if (!second.allowed) throw new Error('expected a second permit of one')
    await Promise.all([permit.release(), second.release()])
  },
}

it.each(rows)('$of: $key', async ({ of, key }) => {
  await checks[of]!(key)
})

it('has every row', () => {
  expect(rows.map(({ of }) => of)).toEqual(Object.keys(checks))
})
