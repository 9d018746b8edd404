import { createLimiter, fixedWindow, type Limiter, memoryStore, type Store } from '@sluice/core'
import { machineStore } from '@sluice/machine'
import { redisStore, type RedisStoreOptions } from '@sluice/core/redis'
import { digest } from '@sluice/core/internal'
import { command, monitor, type RedisServer, startRedis } from '@sluice/harness/redis'
import { fakeOnly } from '@sluice/harness/stores'
import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { fleetTopKeys, hashKey, topKeys } from '../src/index.js'
import { postsOf, textOf } from '../src/top-keys/post.js'
import { mergeSummaries, type Summary } from '../src/top-keys/summary.js'
import { expectLaws, sizes, streams, summarize } from './summaries.js'

const KEY = 'sluice:4:top-keys:board:'
let now = 1_767_225_600_000_000
const closing: { close(): unknown }[] = []
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
beforeEach(() => fakeOnly())
afterEach(async () => {
  jest.useRealTimers()
  for (const each of closing.splice(0)) await each.close()
  await command(server, 'FLUSHALL')
})
afterAll(() => server.stop())

/** To Redis each store is a process of its own. */
function openStore(options: RedisStoreOptions = {}, login = {}): Store {
  const store = redisStore(
    { host: server.host, port: server.port, ...login },
    { clock: () => now, ...options },
  )
  closing.push(store)
  return store
}

/** The denied keys of a limiter by what `hashKeys` makes of them. */
function hashedBy(hashKeys: unknown): unknown {
  const limiter = openLimiter()
  const top = topKeys(limiter, { hashKeys: hashKeys as never })
  for (let i = 0; i < 5; i++) void limiter.decide('k')
  return top.denied()
}

const NOTHING = { total: 0, missed: 0, keys: [] }

/** A text of one process with one post, a sound one but for `changes`. */
function posted(changes: object): { format: number; posts: object[] } {
  const summary = { total: 1, missed: 0, keys: [['k', 1, 0]] }
  const sound = { limiter: 'api', size: 100, denied: summary, sampled: summary, decisions: [] }
  return { format: 1, posts: [{ ...sound, ...changes }] }
}

function openLimiter(name = 'api', store: Store = memoryStore({ clock: () => now })): Limiter {
  const limiter = createLimiter({ name, policies: [fixedWindow({ limit: 2, window: '1h' })], store })
  closing.push(limiter)
  return limiter
}

async function call(limiter: Limiter, key: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await limiter.consume(key)
}

/** Lets the timers of 10 s pass, and what they send reach the store. */
async function post(...stores: readonly Store[]): Promise<void> {
  jest.advanceTimersByTime(10_000)
  for (const store of stores) await store.board!('top-keys').read() // replies come in order
}

describe('top keys of a fleet', () => {
  it('are the sums of what its processes counted, with decisions by policy and result', async () => {
    const stores = [openStore(), openStore(), openStore()]
    const [one, other] = [openLimiter(), openLimiter()]
    topKeys(one, { fleet: stores[0]! })
    topKeys(other, { fleet: stores[1]! })
    await call(one, 'often', 12)
    await call(other, 'often', 7)
    await call(other, 'once', 3)
    await post(...stores)
    const { processes, denied, decisions, all } = await fleetTopKeys(stores[2]!, 'api')
    expect(processes).toBe(2)
    expect(denied).toEqual([
      { key: 'often', count: 15, error: 0 },
      { key: 'once', count: 1, error: 0 },
    ])
    expect(decisions).toEqual([
      { policy: '2-per-1h', result: 'denied', count: 16 },
      { policy: '2-per-1h', result: 'allowed', count: 6 },
    ])
    for (const { count, error } of all) expect(count - error).toBeLessThanOrEqual(19)
    expect(await fleetTopKeys(stores[2]!, 'other')).toEqual({
      processes: 0,
      malformed: 0,
      denied: [],
      all: [],
      decisions: [],
    })
  })

  it('keep both laws when they have travelled as texts and are merged', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(streams, sizes), { minLength: 1, maxLength: 5 }),
        (parts: [stream: string[], size: number][]) => {
          const summaries = parts.flatMap(([stream, size]): readonly Summary[] => {
            const denied = summarize(stream, size)
            const post = { limiter: 'api', size, denied, sampled: denied, decisions: [] }
            return postsOf(textOf([post])).posts.map((read) => read.denied)
          })
          const size = Math.min(...parts.map(([, own]) => own))
          expectLaws(
            mergeSummaries(summaries, size),
            parts.flatMap(([stream]) => stream),
            size,
          )
        },
      ),
    )
  })

  it('cost one command a process each 10 s, for all of its limiters', async () => {
    const store = openStore()
    const commands = await monitor(server)
    const limiters = [openLimiter('a'), openLimiter('b'), openLimiter('c')]
    for (const limiter of limiters) topKeys(limiter, { fleet: store })
    for (const limiter of limiters) await call(limiter, 'k', 5)
    await post(store)
    await post(store)
    const sent = (await commands.stop()).filter((line) => /"eval(sha)?"/i.test(line) && line.includes(KEY))
    expect(sent).toHaveLength(2 + 2) // two posts, and the two reads of `post`
    expect(await command(server, 'HLEN', KEY)).toBe(1)
    for (const name of ['a', 'b', 'c']) {
      expect((await fleetTopKeys(store, name)).denied).toEqual([{ key: 'k', count: 3, error: 0 }])
    }
  })

  it('are not shared by default', async () => {
    const limiter = openLimiter('api', openStore())
    topKeys(limiter)
    await call(limiter, 'k', 5)
    await post()
    expect(await command(server, 'EXISTS', KEY)).toBe(0)
  })

  it('forget a process that has not written for 30 s, and one whose limiter is closed writes no more', async () => {
    const store = openStore()
    const limiter = openLimiter()
    topKeys(limiter, { fleet: store })
    await call(limiter, 'k', 5)
    await post(store)
    await limiter.close()
    now += 29_999_999
    expect((await fleetTopKeys(store, 'api')).processes).toBe(1)
    now += 1
    expect((await fleetTopKeys(store, 'api')).processes).toBe(0)
    await post(store)
    expect((await fleetTopKeys(store, 'api')).processes).toBe(0)
  })

  it('hold hashes in place of keys where that is asked for, in Redis too', async () => {
    const store = openStore()
    const limiter = openLimiter()
    const top = topKeys(limiter, { fleet: store, hashKeys: true })
    await call(limiter, 'user:42', 5)
    await post(store)
    const expected = [{ key: hashKey('user:42'), count: 3, error: 0 }]
    expect(expected[0]!.key).toMatch(/^[0-9a-f]{16}$/)
    expect(top.denied()).toEqual(expected)
    expect((await fleetTopKeys(store, 'api')).denied).toEqual(expected)
    expect(String(await command(server, 'HVALS', KEY))).not.toContain('user:42')
  })

  it('list long keys by their digest, so that they fill neither the process nor the store', async () => {
    const store = openStore()
    const limiter = openLimiter()
    const top = topKeys(limiter, { fleet: store })
    const long = 'x'.repeat(8192)
    await call(limiter, long, 5)
    await post(store)
    const expected = [{ key: `sha256:${digest(long)}`, count: 3, error: 0 }]
    expect(top.denied()).toEqual(expected)
    expect((await fleetTopKeys(store, 'api')).denied).toEqual(expected)
  })

  it.each(['x'.repeat(8192), 'sha256:', 'sha', ''])('hash the key %.10s as hashKey does', async (key) => {
    const limiter = openLimiter()
    const top = topKeys(limiter, { hashKeys: true })
    await call(limiter, key, 3)
    expect(top.denied()).toEqual([{ key: hashKey(key), count: 1, error: 0 }])
  })

  it('leave out texts of another format, which are not malformed', async () => {
    const store = openStore()
    await store.board!('top-keys').post('later', '{"format":2,"posts":[]}', 30_000)
    expect(await fleetTopKeys(store, 'api')).toMatchObject({ processes: 0, malformed: 0 })
  })

  it.each<[string, unknown]>([
    ['a text that is no JSON', '{'],
    ['null', null],
    ['a number', 7],
    ['a text without a format', { posts: [] }],
    ['a format that is no number', { format: 'x', posts: [] }],
    ['posts that are no list', { format: 1, posts: {} }],
    ['null for a post', { format: 1, posts: [null] }],
    ['a post without a limiter', posted({ limiter: undefined })],
    ['a size of 0', posted({ size: 0, denied: NOTHING, sampled: NOTHING })],
    [
      'a total without an end',
      JSON.stringify(posted({ denied: NOTHING })).replace('"total":0', '"total":1e999'),
    ],
    ['a size that is a text', posted({ size: '100' })],
    ['no list of decisions', posted({ decisions: undefined })],
    ['a decision without a count', posted({ decisions: [{ policy: 'p', result: 'denied' }] })],
    ['a decision of a negative count', posted({ decisions: [{ policy: 'p', result: 'denied', count: -1 }] })],
    ['no summary', posted({ denied: null })],
    ['a summary without a total', posted({ sampled: { missed: 0, keys: [] } })],
    ['keys that are no list', posted({ denied: { total: 1, missed: 0, keys: 5 } })],
    ['a key that is a number', posted({ denied: { total: 1, missed: 0, keys: [[5, 1, 0]] } })],
    ['a count that is a text', posted({ denied: { total: 1, missed: 0, keys: [['k', '1', 0]] } })],
    ['an error above its count', posted({ denied: { total: 1, missed: 0, keys: [['k', 1, 2]] } })],
    [
      'more keys than its size',
      posted({
        size: 1,
        denied: {
          total: 2,
          missed: 0,
          keys: [
            ['k', 1, 0],
            ['l', 1, 0],
          ],
        },
      }),
    ],
  ])('leave out and count %s', async (_, text) => {
    const store = openStore()
    const limiter = openLimiter()
    topKeys(limiter, { fleet: store })
    await call(limiter, 'k', 5)
    await post(store)
    const sound = await fleetTopKeys(store, 'api')
    expect(sound).toMatchObject({ processes: 1, malformed: 0 })
    await store.board!('top-keys').post(
      'broken',
      typeof text === 'string' ? text : JSON.stringify(text),
      30_000,
    )
    expect(await fleetTopKeys(store, 'api')).toEqual({ ...sound, malformed: 1 })
  })

  it('keep the sound posts beside a malformed one of the same process', async () => {
    const store = openStore()
    const posts = [...posted({}).posts, ...posted({ size: -1 }).posts]
    await store.board!('top-keys').post('half', JSON.stringify({ format: 1, posts }), 30_000)
    expect(await fleetTopKeys(store, 'api')).toMatchObject({ processes: 1, malformed: 1 })
  })

  it('work with a memory store', async () => {
    const store = memoryStore({ clock: () => now })
    const limiter = openLimiter('api', store)
    topKeys(limiter, { fleet: store })
    await call(limiter, 'k', 5)
    await post(store)
    expect((await fleetTopKeys(store, 'api')).denied).toEqual([{ key: 'k', count: 3, error: 0 }])
  })

  it('need the permissions that docs/operations.md names, and warn without', async () => {
    const page = readFileSync('docs/operations.md', 'utf8')
    const [, rules = ''] = /^user sluice (.*)$/m.exec(page)!
    const [, more = ''] = /^Top keys of a fleet[^`]*`([^`]+)`/m.exec(page)!
    const user = { username: 'sluice', password: 'CHANGE-ME' }
    const permissions = more.split(' ')
    for (const missing of [undefined, ...permissions]) {
      const granted = permissions.filter((permission) => permission !== missing)
      await command(server, 'ACL', 'SETUSER', 'sluice', 'reset', ...rules.split(' '), ...granted)
      await command(server, 'HSET', KEY, '1:gone', 'text') // so that there is something to remove
      const store = openStore({}, user)
      const limiter = openLimiter()
      const warnings: string[] = []
      limiter.on('warning', ({ code }) => void warnings.push(code))
      topKeys(limiter, { fleet: store })
      const read = post(store).then(() => fleetTopKeys(store, 'api'))
      if (missing === undefined) expect((await read).processes).toBe(1)
      const failed = await read.then(
        () => false,
        () => true,
      )
      await new Promise(setImmediate)
      expect({ missing, seen: failed || warnings.join() === 'TOP_KEYS_NOT_SHARED' }).toEqual({
        missing,
        seen: missing !== undefined,
      })
      await limiter.close()
    }
  })

  it.each<[string, () => unknown]>([
    ['one with a board', () => topKeys(openLimiter(), { fleet: {} as never })],
    ['one with a board', () => topKeys(openLimiter(), { fleet: machineStore({ name: 'fleet-test' }) })],
    ['hashKeys must return a string', () => hashedBy(async (key: string) => key)],
    ['hashKeys must return a string', () => hashedBy(() => 7)],
    ['hashKeys must be', () => topKeys(openLimiter(), { hashKeys: 'yes' as never })],
  ])('refuse what cannot be used: %s', (message, act) => {
    expect(act).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
    )
  })

  it('refuse to be read from what cannot be read', async () => {
    const store = memoryStore()
    const silent = { ...store, board: () => ({ post() {}, read: () => new Promise<never>(() => {}) }) }
    await expect(fleetTopKeys({} as never, 'api')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(fleetTopKeys(store, 5 as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    const asked = fleetTopKeys(silent, 'api', { deadline: '1ms' })
    await expect(asked).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
  })
})
