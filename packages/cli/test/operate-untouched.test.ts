import { calendarWindow } from '@sluice/calendar'
import { createLimiter, gcra, type Limiter, type LimiterOptions, slidingLog, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { startPostgres } from '@sluice/harness/postgres'
import { command, startRedis } from '@sluice/harness/redis'
import { fakeOnly } from '@sluice/harness/stores'
import { keepDenials, lastDenials, topKeys } from '@sluice/metrics'
import { postgresStore } from '@sluice/postgres'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { runCommand } from './run-command.js'

/*
 * What commands that read, and acts with --dry-run, leave in a store: each byte, of whatever kind of limiter and of whatever version.
 */

interface Place {
  readonly url: string
  open(): Store & { close(): unknown }
  /** All that the store holds, by key or id, as its server has it. */
  dump(): Promise<Readonly<Record<string, unknown>>>
  stop(): Promise<void>
}

async function redisPlace(): Promise<Place> {
  const server = await startRedis()
  const url = `redis://${server.host}:${server.port}`
  return {
    url,
    open: () => redisStore(url, { denialCache: false }),
    async dump() {
      const keys = (await command<string[]>(server, 'KEYS', '*')).toSorted()
      const ends = await Promise.all(keys.map((key) => command(server, 'PEXPIRETIME', key)))
      const texts = await Promise.all(keys.map((key) => command(server, 'DUMP', key)))
      return Object.fromEntries(keys.map((key, i) => [key, [texts[i], ends[i]]]))
    },
    stop: () => server.stop(),
  }
}

async function postgresPlace(): Promise<Place> {
  const { url, stop } = await startPostgres()
  return {
    url,
    open: () => postgresStore(url, { denialCache: false }),
    async dump() {
      const client = new Client(url)
      await client.connect()
      const { rows } = await client.query<{ id: string }>('select *, xmin::text from sluice order by id')
      await client.end()
      return Object.fromEntries(rows.map(({ id, ...row }) => [id, row]))
    },
    stop,
  }
}

const SECRET = 'b7e151628aed2a6abf7158809cf4f3c7'
const log = { limit: 2, window: '1d' } as const
const daily = { every: 'day', limit: 2 } as const
const spread = { limit: 2, window: '1d' } as const
const LIMITERS: Readonly<Record<string, Partial<LimiterOptions>>> = {
  api: { policies: [slidingLog(log)], penalty: { after: 2, block: '1h' } },
  budget: { policies: [calendarWindow(daily)], reservations: { max: 3 } },
  paid: { policies: [slidingLog(log)], tiers: [[gcra(spread)]] },
}
const FILE = JSON.stringify({
  limiters: {
    api: { policies: [{ algorithm: 'slidingLog', ...log }] },
    budget: { policies: [{ algorithm: 'calendarWindow', ...daily }] },
    paid: {
      policies: [{ algorithm: 'slidingLog', ...log }],
      plans: { pro: [{ algorithm: 'gcra', ...spread }] },
    },
  },
})

describe.each([
  ['Redis', redisPlace, 'by this secret it is of no key in Redis'],
  ['Postgres', postgresPlace, 'Postgres has no keys to look through'],
])('a store in %s', (_, start, lookedAt) => {
  let place: Place
  let id: string
  let folder: string
  let policies: readonly string[]
  beforeAll(async () => {
    place = await start()
    folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
    policies = ['--policies', join(folder, 'policies.json')]
    writeFileSync(policies[1]!, FILE)
    const store = place.open()
    const made = { store, deadline: '10s', onStoreError: 'throw' } as const
    const limiters: Readonly<Record<string, Limiter>> = Object.fromEntries(
      Object.entries(LIMITERS).map(([limiter, more]) => [
        limiter,
        createLimiter({ name: limiter, policies: [], ...made, ...more }),
      ]),
    )
    fakeOnly()
    const denials = keepDenials({ secret: SECRET, fleet: store })
    for (const limiter of Object.values(limiters)) {
      topKeys(limiter, { fleet: store })
      for (let i = 0; i < 4; i++) id = denials.keep(await limiter.consume('user:ann'))
      await limiter.block('user:bob', '1h', { reason: 'scrapes', by: 'ann' })
      await limiter.hold('user:cid', '1h', { reason: 'asked', by: 'ann' })
      await limiter.override('user:dan', { exempt: true, until: '1h', reason: 'asked', by: 'ann' })
      await limiter.override('user:eve', { exempt: true, until: 1, reason: 'has ended', by: 'ann' })
    }
    await limiters['budget']!.reserve('user:fay', { cost: 1, ttl: '1h' })
    await limiters['budget']!.reserve('user:gus', { cost: 2, ttl: 1 })
    await jest.advanceTimersByTimeAsync(10_000)
    jest.useRealTimers()
    while ((await lastDenials(store)).denials.length === 0);
    denials.stop()
    // As later versions may leave them.
    const later = { id: 'pardon api\n"user:ann"', text: '{"by":"ann"}', until: 0, life: 3.6e9, most: 9 }
    await store.records!().write(later, 0)
    const post = (author: string, text: string) => store.board!('top-keys').post(author, text, 3_600_000)
    await post('later', '{"format":2,"tops":[]}')
    await post('also later', '{"format":2}')
    await post('broken', 'no post')
    // From here on the commands are the only processes.
    for (const limiter of Object.values(limiters)) await limiter.close()
    await store.close()
  })
  afterAll(async () => {
    await place.stop()
    rmSync(folder, { recursive: true })
  })
  afterEach(() => delete process.env['SLUICE_SECRET'])

  const KEYS = ['ann', 'bob', 'cid', 'dan', 'eve', 'fay', 'gus', 'new'].map((key) => `user:${key}`)
  const WHO = ['--reason', 'r', '--dry-run']
  const READING: readonly (readonly string[])[] = [
    ...KEYS.map((key) => ['why', key]),
    ['why', 'user:ann', '--cost', '3'],
    ['why', 'user:ann', '--plan', 'pro'],
    ['top'],
    ['blocked'],
    ['overrides'],
    ...KEYS.flatMap((key) => [
      ['unblock', key, ...WHO],
      ['reset', key, ...WHO],
      ['block', key, '--for', '1h', ...WHO],
      ['exempt', key, '--for', '1h', ...WHO],
      ['exempt', key, '--remove', ...WHO],
    ]),
  ]

  it('has each byte after all that reads as before, ends of keys too', async () => {
    process.env['SLUICE_SECRET'] = SECRET
    const before = await place.dump()
    for (const args of [...READING, ['why', '--id', id]]) {
      const { status, stderr } = await runCommand([...args, ...policies], place)
      expect([args, status, stderr]).toEqual([args, 0, ''])
    }
    const none = await runCommand(['why', '--id', '4f0a2b6c8d1e3f507192', ...policies], place)
    expect(none).toMatchObject({ status: 1, stdout: expect.stringContaining(lookedAt) })
    expect(await place.dump()).toEqual(before)
    expect(Object.keys(before).length).toBeGreaterThan(10)
  })

  it('has what this version does not know named, and as it was after acts on the same keys', async () => {
    const reader = place.open()
    const lines = async (...args: string[]): Promise<string> =>
      (await runCommand([...args, ...policies], place)).stdout
    expect(await lines('overrides')).toContain('left alone: records that this version does not know (1)')
    for (const args of [['top'], ['why', '--id', id]]) {
      const printed = await lines(...args)
      expect(printed).toContain('left alone: posts of format 2, which this version does not know (2)')
      expect(printed).toContain('left alone: posts that cannot be read (1)')
    }
    const foreign = async () => ({
      records: (await reader.records!().read(0, [])).records.filter((each) => each.id.startsWith('pardon')),
      posts: (await reader.board!('top-keys').read())
        .filter((text) => !text.includes('"format":1'))
        .toSorted(),
    })
    const before = await foreign()
    expect([before.records.length, before.posts.length]).toEqual([1, 3])
    for (const act of [['block', '--for', '1h'], ['unblock'], ['exempt', '--for', '1h'], ['reset']])
      expect(
        await lines(act[0]!, 'user:ann', ...act.slice(1), '--reason', 'r', '--as', 'ann', '--yes'),
      ).toContain('done')
    expect(await foreign()).toEqual(before)
    await reader.close()
  })
})
