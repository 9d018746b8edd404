import { createLimiter, type Decision, fixedWindow, memoryStore, type Store } from '@sluice/core'
import { digest, storedKey } from '@sluice/core/internal'
import { redisStore } from '@sluice/core/redis'
import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { command, monitor, type RedisServer, startRedis } from '@sluice/harness/redis'
import { fakeOnly } from '@sluice/harness/stores'
import { expectWarnings } from '@sluice/harness/warnings'
import { machineStore } from '@sluice/machine'
import { postgresStore } from '@sluice/postgres'
import {
  type Denial,
  denialId,
  type DeniedEvent,
  fleetTopKeys,
  hashKey,
  type KeyHash,
  keepDenials,
  type KeepDenialsOptions,
  lastDenials,
  topKeys,
} from '../src/index.js'

const SECRET = 'b7e151628aed2a6abf7158809cf4f3c7'
/** 2026-01-01, the day 20,454 since the epoch. */
const NEW_YEAR = 20_454 * 86_400_000
const KEY = 'sluice:4:top-keys:board:'
const closing: { close(): unknown }[] = []
let redis: RedisServer
let postgres: PostgresServer
beforeAll(async () => {
  ;[redis, postgres] = await Promise.all([startRedis(), startPostgres()])
})
let tests = 0
afterEach(async () => {
  tests++
  jest.useRealTimers()
  for (const each of closing.splice(0)) await each.close()
  await command(redis, 'FLUSHALL')
})
afterAll(() => Promise.all([redis.stop(), postgres.stop()]))

function kept(options: Partial<KeepDenialsOptions> = {}) {
  const denials = keepDenials({ secret: SECRET, ...options })
  closing.push({ close: denials.stop })
  return denials
}

/** The decision of a limiter that denies, by default for ever. */
function denied(key: string, { limit = 0, name = 'api', enforce = true } = {}): Decision {
  const policies = [fixedWindow({ limit, window: '1h', name: 'hourly' })]
  const limiter = createLimiter({ name, policies, enforce, store: memoryStore({ clock: () => 0 }) })
  for (let i = 0; i < limit; i++) void limiter.decide(key)
  return limiter.decide(key) as Decision
}

const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  Redis: () => redisStore({ host: redis.host, port: redis.port }),
  Postgres: () => postgresStore(postgres.url, { table: `test_${tests}` }),
}

function open(store: string): Store {
  const opened = STORES[store]!()
  closing.push(opened)
  return opened
}

/** Lets the 10 s pass after which processes post, and what they send reach the store. */
async function posted(...stores: readonly Store[]): Promise<void> {
  jest.advanceTimersByTime(10_000)
  for (const store of stores) await store.board!('top-keys').read() // replies come in order
}

const keysOf = (denials: readonly Denial[]) => denials.map(({ key }) => key)

describe('the id of a denial', () => {
  const of = { limiter: 'api', storedKey: 'user:42', at: NEW_YEAR }

  it('is the first 80 bits of an HMAC-SHA256 of limiter, key and day', () => {
    // printf '["api","user:42",20454]' | openssl dgst -sha256 -hmac $SECRET
    expect(denialId(SECRET, of)).toBe('a13e96e22ef433f65a2c')
  })

  it('is the same for a whole day of UTC', () => {
    expect(denialId(SECRET, { ...of, at: NEW_YEAR + 86_399_999 })).toBe(denialId(SECRET, of))
  })

  it.each([
    ['the next day', SECRET, { at: NEW_YEAR + 86_400_000 }],
    ['the day before', SECRET, { at: NEW_YEAR - 1 }],
    ['another limiter', SECRET, { limiter: 'apis' }],
    ['another key', SECRET, { storedKey: 'user:43' }],
    ['the same characters, parted elsewhere', SECRET, { limiter: 'api","user', storedKey: '42' }],
    ['another secret', SECRET.toUpperCase(), {}],
  ])('is another for %s', (_, secret, other) => {
    expect(denialId(secret, { ...of, ...other })).not.toBe(denialId(SECRET, of))
  })

  it('tells keys apart that are the same in UTF-8', () => {
    const ids = ['\ud800', '\udbff', '\ufffd'].map((key) => denialId(SECRET, { ...of, storedKey: key }))
    expect(new Set(ids).size).toBe(3)
  })

  it.each([
    ['too-short-a-secret', 'got 18'],
    [undefined, 'got a value of type undefined'],
  ])('needs a secret that cannot be guessed, and does not tell it: %s', (secret, got) => {
    for (const act of [() => denialId(secret as never, of), () => keepDenials({ secret: secret as never })]) {
      expect(act).toThrow(
        expect.objectContaining({
          code: 'INVALID_OPTION',
          message: `secret must be a text of 32 characters or more, ${got}`,
        }),
      )
    }
  })
})

describe('denials that are kept', () => {
  it('say who was denied by what, and for how long', () => {
    fakeOnly(['Date'], NEW_YEAR)
    const denials = kept()
    const id = denials.keep(denied('user:42', { limit: 2 }))
    expect(id).toBe(denialId(SECRET, { limiter: 'api', storedKey: 'user:42', at: NEW_YEAR }))
    expect(denials.list()).toEqual([
      {
        id,
        limiter: 'api',
        policy: 'hourly',
        key: 'user:42',
        reason: 'limit',
        retryAfterMs: 3_600_000,
        at: NEW_YEAR,
      },
    ])
  })

  it('are the last of each key and limiter, the newest first', () => {
    fakeOnly(['Date'], NEW_YEAR)
    const denials = kept()
    denials.keep(denied('a', { limit: 1 }))
    denials.keep(denied('b'))
    denials.keep(denied('a', { name: 'other' }))
    jest.setSystemTime(NEW_YEAR + 5)
    denials.keep(denied('a'))
    expect(
      denials.list().map(({ limiter, key, retryAfterMs, at }) => [limiter, key, retryAfterMs, at]),
    ).toEqual([
      ['api', 'a', Infinity, NEW_YEAR + 5],
      ['other', 'a', Infinity, NEW_YEAR],
      ['api', 'b', Infinity, NEW_YEAR],
    ])
  })

  it('are those of 1,000 keys: the one that was denied longest ago is forgotten', () => {
    const denials = kept()
    for (let i = 0; i < 1000; i++) denials.keep(denied(`k${i}`))
    denials.keep(denied('k0'))
    expect(denials.list()).toHaveLength(1000)
    denials.keep(denied('one more'))
    expect(denials.list()).toHaveLength(1000)
    expect(keysOf(denials.list()).slice(0, 3)).toEqual(['one more', 'k0', 'k999'])
    expect(keysOf(denials.list())).not.toContain('k1')
  })

  it('get another id on another day', () => {
    fakeOnly(['Date'], NEW_YEAR)
    const denials = kept()
    const ids = [0, 86_399_999, 86_400_000].map((later) => {
      jest.setSystemTime(NEW_YEAR + later)
      return denials.keep(denied('a'))
    })
    expect(ids[1]).toBe(ids[0])
    expect(ids[2]).toBe(denialId(SECRET, { limiter: 'api', storedKey: 'a', at: NEW_YEAR + 86_400_000 }))
    expect(ids[2]).not.toBe(ids[0])
  })

  it.each([
    ['was allowed', {}],
    ['would have been denied but for shadow mode', { enforce: false }],
  ])('leave out a call that %s', (name, options) => {
    const denials = kept()
    const events: DeniedEvent[] = []
    denials.on('denied', (event) => void events.push(event))
    const policies = [fixedWindow({ limit: 1, window: '1h' })]
    const limiter = createLimiter({ policies, ...options })
    if ('enforce' in options) void limiter.decide('a')
    const decision = limiter.decide('a') as Decision
    expect([decision.allowed, decision.wouldDeny]).toEqual([true, 'enforce' in options ? true : undefined])
    expect(denials.keep(decision)).toMatch(/^[0-9a-f]{20}$/)
    expect([name, denials.list(), events]).toEqual([name, [], []])
  })

  it('keep a long key by its digest, and its id is that of the key as stored', () => {
    const denials = kept()
    const key = 'x'.repeat(8192)
    const id = denials.keep(denied(key))
    expect(denials.list()).toMatchObject([{ id, key: `sha256:${digest(key)}` }])
    expect(denialId(SECRET, { limiter: 'api', storedKey: storedKey(key), at: Date.now() })).toBe(id)
  })

  it('tell the id for an answer of one’s own, and are not changed by that', () => {
    const denials = kept()
    const id = denials.idOf(denied('a'))
    expect(denials.list()).toEqual([])
    expect(denials.keep(denied('a'))).toBe(id)
  })

  it.each<[string, true | KeyHash, string]>([
    ['16 digits of its digest', true, hashKey('user:42')],
    ['what a function makes of it', (key) => `<${key}>`, '<user:42>'],
  ])(
    'show in place of a key, where that is asked for, %s, and have the id of the key',
    (_, hashKeys, shown) => {
      const denials = kept({ hashKeys })
      const events: DeniedEvent[] = []
      denials.on('denied', (event) => void events.push(event))
      const ids = [denials.keep(denied('user:42')), denials.keep(denied('user:42'))]
      expect(ids).toEqual(Array(2).fill(kept().idOf(denied('user:42'))))
      expect(keysOf(denials.list())).toEqual([shown])
      expect(keysOf(events)).toEqual([shown, shown])
    },
  )

  it('are each an event, until nobody listens', () => {
    const denials = kept()
    const events: DeniedEvent[] = []
    const end = denials.on('denied', (event) => void events.push(event))
    denials.keep(denied('a'))
    denials.keep(denied('a'))
    expect(events).toEqual(Array(2).fill({ type: 'denied', ...denials.list()[0], at: expect.any(Number) }))
    end()
    denials.keep(denied('a'))
    expect(events).toHaveLength(2)
  })

  it.each<[string, Partial<KeepDenialsOptions>, () => void]>([
    ['a listener', {}, fails],
    ['hashKeys', { hashKeys: fails }, () => {}],
  ])('give the id though %s throws, which is one warning', async (_, options, listener) => {
    const written = expectWarnings(['LISTENER_FAILED'])
    const denials = kept(options)
    denials.on('denied', listener)
    expect(denials.keep(denied('a'))).toBe(kept().idOf(denied('a')))
    denials.keep(denied('b'))
    await new Promise(setImmediate)
    expect(written).toHaveLength(1)
  })

  it.each<[string, object]>([
    ["there is no option 'secrets' of keepDenials", { secrets: SECRET }],
    ['hashKeys must be', { hashKeys: 'yes' }],
    ['one with a board', { fleet: {} }],
    ['a machineStore has none', { fleet: machineStore({ name: 'denials-test' }) }],
  ])('are refused with options that cannot work: %s', (message, options) => {
    expect(() => keepDenials({ secret: SECRET, ...options })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
    )
  })
})

function fails(): never {
  throw new Error('broken')
}

type Denials = ReturnType<typeof kept>

describe.each(Object.keys(STORES))('the last denials of a fleet, through %s', (kind) => {
  beforeEach(() => fakeOnly())

  it('are those of all processes, the newest first, of each caller the newest', async () => {
    // To Redis and Postgres each store is a process of its own.
    const first = open(kind)
    const stores = kind === 'memory' ? [first, first] : [first, open(kind)]
    const [one, other] = stores.map((fleet) => kept({ fleet })) as [Denials, Denials]
    const clock = jest.spyOn(Date, 'now')
    const keepAt = (ms: number, denials: Denials, decision: Decision) => {
      clock.mockReturnValue(NEW_YEAR + ms)
      denials.keep(decision)
    }
    keepAt(1, one, denied('both', { limit: 1 }))
    keepAt(2, other, denied('other'))
    keepAt(3, other, denied('both'))
    keepAt(4, one, denied('one'))
    clock.mockRestore()
    await posted(...stores)
    expect(await lastDenials(first)).toEqual({
      denials: [one.list()[0], ...other.list()],
      processes: kind === 'memory' ? 1 : 2,
      malformed: 0,
      unknown: [],
    })
    expect(keysOf(one.list())).toEqual(['one', 'both'])
    expect(keysOf(other.list())).toEqual(['both', 'other'])
  })

  it('are the newest 50 of each process', async () => {
    const fleet = open(kind)
    const denials = kept({ fleet })
    for (let i = 0; i < 60; i++) denials.keep(denied(`k${i}`, { limit: i % 2 }))
    await posted(fleet)
    expect((await lastDenials(fleet)).denials).toEqual(denials.list().slice(0, 50))
  })

  it('lie beside the top keys, which stay as they are', async () => {
    const fleet = open(kind)
    const policies = [fixedWindow({ limit: 0, window: '1h' })]
    const limiter = createLimiter({ name: 'api', policies, store: memoryStore() })
    closing.push(limiter)
    topKeys(limiter, { fleet })
    const denials = kept({ fleet })
    denials.keep(await limiter.consume('a'))
    await posted(fleet)
    expect(await fleetTopKeys(fleet, 'api')).toMatchObject({
      processes: 1,
      malformed: 0,
      denied: [{ key: 'a', count: 1, error: 0 }],
    })
    expect((await lastDenials(fleet)).denials).toEqual(denials.list())
  })
})

describe('a post of denials', () => {
  beforeEach(() => fakeOnly())

  /** What a process posts of denials of these keys, the last the newest. */
  async function postOf(keys: readonly string[], options: Partial<KeepDenialsOptions> = {}) {
    const fleet = open('memory')
    const denials = kept({ fleet, ...options })
    for (const key of keys) denials.keep(denied(key))
    await posted(fleet)
    const [text] = await fleet.board!('top-keys').read()
    const bytes = Buffer.byteLength(JSON.stringify((JSON.parse(text!) as { denials: unknown }).denials))
    const read = await lastDenials(fleet)
    expect(read.malformed).toBe(0)
    return { bytes, keys: keysOf(read.denials) }
  }

  it.each([
    ['characters of one byte', 'k'],
    ['characters of three bytes', '\u20ac'],
    ['pairs of surrogates', '\u{1f600}'],
    ['what JSON escapes', '\u0001'],
    ['halves of pairs', '\ud800'],
  ])('takes 8 kB at most, and is the newest, with keys of %s', async (_, unit) => {
    const keys = Array.from({ length: 50 }, (_, i) => `${i}`.padEnd(128, unit))
    const post = await postOf(keys)
    expect(post.bytes).toBeLessThanOrEqual(8000)
    // One more had not fitted.
    expect(post.bytes).toBeGreaterThan(8000 - 1000)
    expect(post.keys).toEqual(keys.toReversed().slice(0, post.keys.length))
    expect(post.keys.length).toBeLessThan(50)
  })

  it('has 50 keys where they take 8,000 bytes, and 49 where they take a byte more', async () => {
    const short = Array.from({ length: 50 }, (_, i) => `${i}`.padEnd(60, 'k'))
    const { bytes } = await postOf(short)
    // What is left, given to all keys alike as far as that goes.
    const left = 8000 - bytes
    const full = short.map((key, i) => key + 'k'.repeat(Math.floor((left + i) / 50)))
    const exact = await postOf(full)
    expect([exact.bytes, exact.keys.length]).toEqual([8000, 50])
    expect((await postOf(full.map((key, i) => (i === 0 ? `${key}k` : key)))).keys).toHaveLength(49)
  })

  it('has the newest of all denials that a process keeps apart, 50 in all', async () => {
    const fleet = open('memory')
    const both = [kept({ fleet }), kept({ fleet })] as const
    const clock = jest.spyOn(Date, 'now')
    for (let i = 0; i < 80; i++) {
      clock.mockReturnValue(NEW_YEAR + i)
      both[i % 2]!.keep(denied(`k${i}`))
    }
    clock.mockRestore()
    await posted(fleet)
    const newest = Array.from({ length: 50 }, (_, i) => `k${79 - i}`)
    expect(keysOf((await lastDenials(fleet)).denials)).toEqual(newest)
    const [text] = await fleet.board!('top-keys').read()
    const sent = (JSON.parse(text!) as { denials: string[][] }).denials
    expect(sent.map((denial) => denial[3])).toEqual(newest)
  })

  it('leaves out a key alone that fills it', async () => {
    const hashKeys = (key: string) => (key === 'b' ? 'b'.repeat(8000) : key)
    expect((await postOf(['a', 'b', 'c'], { hashKeys })).keys).toEqual(['c', 'a'])
  })

  it('has hashes in place of keys where that is asked for, in Redis too', async () => {
    const fleet = open('Redis')
    kept({ fleet, hashKeys: true }).keep(denied('user:42'))
    await posted(fleet)
    expect(keysOf((await lastDenials(fleet)).denials)).toEqual([hashKey('user:42')])
    expect(String(await command(redis, 'HVALS', KEY))).not.toContain('user:42')
  })

  it('costs no command more than the top keys, and none before or after', async () => {
    const fleet = open('Redis')
    await fleet.board!('top-keys').read()
    const limiter = createLimiter({ name: 'api', policies: [fixedWindow({ limit: 0, window: '1h' })] })
    closing.push(limiter)
    const commands = await monitor(redis)
    const denials = [kept({ fleet }), kept({ fleet })]
    for (const each of denials) each.keep(denied('a'))
    topKeys(limiter, { fleet })
    await posted(fleet)
    for (const each of denials) each.stop()
    await limiter.close()
    await posted(fleet)
    const sent = (await commands.stop()).filter((line) => /"eval(sha)?"/i.test(line) && line.includes(KEY))
    expect(sent).toHaveLength(1 + 2) // the post, and the two reads of `posted`
  })

  it('is missing where nothing is kept, or nothing shared', async () => {
    const fleet = open('Redis')
    kept({ fleet })
    kept().keep(denied('a'))
    await posted(fleet)
    expect(await fleet.board!('top-keys').read()).toEqual(['{"format":1,"posts":[]}'])
    expect(await lastDenials(fleet)).toEqual({ denials: [], processes: 0, malformed: 0, unknown: [] })
  })

  it('that may not be written is a warning of the process', async () => {
    const written = expectWarnings(['TOP_KEYS_NOT_SHARED'])
    const fleet = open('memory')
    kept({ fleet, hashKeys: () => 7 as never }).keep(denied('a'))
    for (let i = 0; i < 2; i++) await posted(fleet)
    expect(written).toHaveLength(1)
  })
})

describe('a reader of denials', () => {
  const denial = ['id', 'api', 'hourly', 'a', 'limit', 5, 1]
  const post = (fleet: Store, author: string, text: unknown) =>
    fleet.board!('top-keys').post(author, typeof text === 'string' ? text : JSON.stringify(text), 30_000)

  it('names formats that it does not know, and reads the others', async () => {
    const fleet = open('memory')
    await post(fleet, 'later', { format: 3, denials: [[denial]] })
    await post(fleet, 'later too', { format: 3 })
    await post(fleet, 'latest', { format: 4 })
    await post(fleet, 'now', { format: 1, posts: [], denials: [denial] })
    await post(fleet, 'before', { format: 1, posts: [] })
    expect(await lastDenials(fleet)).toEqual({
      denials: [
        { id: 'id', limiter: 'api', policy: 'hourly', key: 'a', reason: 'limit', retryAfterMs: 5, at: 1 },
      ],
      processes: 1,
      malformed: 0,
      unknown: [3, 3, 4],
    })
  })

  it.each<[string, unknown]>([
    ['denials that are no list', 5],
    ['null for denials', null],
    ['null for a denial', [null]],
    ['an object', [{ id: 'id', at: 1 }]],
    ['a denial without its instant', [denial.slice(0, 6)]],
    ['a key that is a number', [denial.with(3, 5)]],
    ['a wait that is a text', [denial.with(5, '5')]],
    ['a wait below 0', [denial.with(5, -1)]],
    ['an instant that is null', [denial.with(6, null as never)]],
  ])('leaves out and counts %s', async (_, denials) => {
    const fleet = open('memory')
    await post(fleet, 'broken', { format: 1, posts: [], denials })
    await post(fleet, 'sound', { format: 1, posts: [], denials: [denial, denial.with(0, 'other')] })
    await post(fleet, 'no text of a process', '{')
    expect(await lastDenials(fleet)).toMatchObject({
      denials: [{ id: 'id' }, { id: 'other' }],
      processes: 1,
      malformed: 2,
    })
  })

  it('refuses a store without a board, and waits for one that is silent for 5 s', async () => {
    fakeOnly(['setTimeout', 'clearTimeout'])
    const store = memoryStore()
    const silent = { ...store, board: () => ({ post() {}, read: () => new Promise<never>(() => {}) }) }
    await expect(lastDenials({} as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    const refused = jest.fn()
    const asked = lastDenials(silent).catch(refused)
    await jest.advanceTimersByTimeAsync(4999)
    expect(refused).not.toHaveBeenCalled()
    await jest.advanceTimersByTimeAsync(1)
    await asked
    expect(refused).toHaveBeenCalledWith(expect.objectContaining({ code: 'STORE_TIMEOUT' }))
  })
})
