import {
  createLimiter,
  type Decision,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  gcra,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { calendarWindow } from '@sluice/calendar'
import { redisStore, type RedisStore } from '@sluice/core/redis'
import { command, monitor, type RedisServer, startRedis } from '@sluice/harness/redis'
import { fakeOnly } from '@sluice/harness/stores'
import { apiKeyKey, ipKey, userKey } from '@sluice/http'
import { denialId, fleetLimits, keepDenials, lastDenials, topKeys } from '@sluice/metrics'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Run, runCommand, type RunOptions } from './run-command.js'

/*
 * The commands on a store, against a Redis that other processes use too: their limiters are stores of their own.
 */

const ADDRESS = '203.0.113.7'
const WHO = ['--reason', 'ticket 42', '--as', 'ann', '--yes']
const policies = [slidingLog({ limit: 2, window: '1d' })]
const entry = [{ algorithm: 'slidingLog', limit: 2, window: '1d' }]

let server: RedisServer
let folder: string
beforeAll(async () => {
  server = await startRedis()
  folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const closing: (() => unknown)[] = []
afterEach(async () => {
  jest.restoreAllMocks()
  for (const close of closing.splice(0).toReversed()) await close()
  await command(server, 'FLUSHALL')
})

const urlOf = ({ host, port }: RedisServer): string => `redis://${host}:${port}`

/** A limiter of another process. */
function limiterOf(
  name: string,
  more: Partial<LimiterOptions> = {},
): { limiter: Limiter; store: RedisStore } {
  const store = redisStore(urlOf(server), { denialCache: false })
  const limiter = createLimiter({ name, policies, store, deadline: '10s', onStoreError: 'throw', ...more })
  closing.push(
    () => store.close(),
    () => limiter.close(),
  )
  return { limiter, store }
}

async function exhausted(limiter: Limiter, key: string): Promise<Decision> {
  while ((await limiter.consume(key)).allowed);
  return limiter.peek(key)
}

/** A policy file with these limiters. */
function fileOf(limiters: object): string {
  const path = join(folder, 'policies.json')
  writeFileSync(path, JSON.stringify({ limiters }))
  return path
}

/** The words of the reset that `why` prints, as a shell takes them, without the reason. */
function cureIn(printed: string): readonly string[] {
  const [, text] = /^ {2}sluice (reset .*) --reason \.\.\.$/m.exec(printed)!
  const words = text!.match(/(?:'[^']*'|\\.|[^\s'\\])+/g)!
  return words.map((word) => word.replace(/'([^']*)'|\\(.)/g, '$1$2'))
}

/** Runs the command on the store, whose address is in the environment, as it should be. */
const sluice = (args: readonly string[], more: Partial<RunOptions> = {}): Promise<Run> =>
  runCommand(args, { url: urlOf(server), ...more })

async function jsonOf(
  args: readonly string[],
): Promise<{ rows: Record<string, unknown>[] } & Record<string, unknown>> {
  const { status, stdout, stderr } = await sluice([...args, '--json'])
  expect([status, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

/** What Redis holds, by key. */
async function dump(): Promise<ReadonlyMap<string, string>> {
  const keys = (await command<string[]>(server, 'KEYS', '*')).toSorted()
  const texts = await Promise.all(keys.map((key) => command<string>(server, 'DUMP', key)))
  return new Map(keys.map((key, i) => [key, texts[i]!]))
}

describe('sluice why', () => {
  it('says why a caller is refused and which commands let him pass', async () => {
    await exhausted(limiterOf('api').limiter, ipKey(ADDRESS))
    const file = fileOf({ api: { policies: entry } })
    const { status, stdout } = await sluice(['why', ADDRESS, '--policies', file])
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /^api: ip:203\.0\.113\.7\nA call of cost 1 is denied under '2-per-1d' \(limit, rule default\); 2 of 2 used/,
    )
    expect(stdout).toContain(
      `\n  sluice reset --key ip:203.0.113.7 --limiter api --policies ${file} --reason ...\n`,
    )
    expect(stdout).toContain(
      `\n  sluice exempt --key ip:203.0.113.7 --for 1h --limiter api --policies ${file} --reason ...\n`,
    )
    expect(stdout).not.toContain('unblock')
  })

  it.each([
    ['ip', ADDRESS, ipKey(ADDRESS)],
    ['ip', '2001:db8::1', ipKey('2001:db8::1')],
    ['ip', 'user:ann', 'user:ann'],
    ['field:user', 'ann', userKey('ann')],
    ['field:user', 'a:b', userKey('a:b')],
    ['field:user', ADDRESS, ipKey(ADDRESS)],
    ['header:x-api-key', 's3cret', apiKeyKey('s3cret')],
    ['header:authorization', 'Bearer s3cret', apiKeyKey('s3cret')],
    ['header:authorization', 'Token s3cret', apiKeyKey('s3cret')],
    [undefined, 'ann', 'ann'],
  ])('by %p takes %s for the key %s', async (by, text, key) => {
    const { rows } = await jsonOf(['why', text, '--policies', fileOf({ api: { policies: entry, by } })])
    expect(rows).toMatchObject([{ limiter: 'api', key, allowed: true, cost: 1 }])
  })

  it('says what was used also where a block outlasts it', async () => {
    await exhausted(limiterOf('api').limiter, ipKey(ADDRESS))
    const at = ['--policies', fileOf({ api: { policies: entry } })]
    await sluice(['block', ADDRESS, '--for', '2d', ...at, ...WHO])
    const { rows } = await jsonOf(['why', ADDRESS, ...at])
    expect(rows).toMatchObject([{ reason: 'blocked', policies: [{ used: 2 }] }])
  })

  it('leaves out limiters that count by address where the caller has none', async () => {
    const file = fileOf({ api: { policies: entry, by: 'ip' }, users: { policies: entry, by: 'field:id' } })
    const { rows } = await jsonOf(['why', 'ann', '--policies', file])
    expect(rows).toMatchObject([{ limiter: 'users' }])
    const { status, stderr } = await sluice(['why', 'ann', '--policies', file, '--limiter', 'api'])
    expect([status, stderr]).toEqual([2, "sluice: 'api': it counts by address, and 'ann' is none\n"])
  })

  it('explains under the policies of a plan, and a cost', async () => {
    const plans = { pro: [{ ...entry[0], limit: 9 }] }
    const file = fileOf({ api: { policies: entry, plans } })
    await exhausted(limiterOf('api').limiter, ipKey(ADDRESS))
    const args = ['why', ADDRESS, '--policies', file, '--plan', 'pro', '--cost', '8']
    expect((await jsonOf(args)).rows).toMatchObject([{ allowed: false, rule: 'plan', cost: 8 }])
    expect((await jsonOf(args.with(-1, '7'))).rows).toMatchObject([{ allowed: true, rule: 'plan' }])
    const { status, stderr } = await sluice(args.with(-3, 'gold'))
    expect([status, stderr]).toEqual([2, "sluice: no limiter here has a plan 'gold'\n"])
  })

  describe('with the id of a denial', () => {
    const secret = 'b7e151628aed2a6abf7158809cf4f3c7'
    const file = (): string => fileOf({ api: { policies: entry } })
    afterEach(() => delete process.env['SLUICE_SECRET'])

    /** Has a caller refused in a process that posts its denials, and returns the id in his answer. */
    async function refused(key: string, hashKeys = false): Promise<string> {
      fakeOnly()
      const { limiter, store } = limiterOf('api')
      const denials = keepDenials({ secret, fleet: store, hashKeys })
      const id = denials.keep(await exhausted(limiter, key))
      await jest.advanceTimersByTimeAsync(10_000)
      jest.useRealTimers()
      closing.push(() => denials.stop())
      let posted = await lastDenials(store)
      while (posted.denials.length === 0) posted = await lastDenials(store)
      return id
    }

    it('finds whom processes have posted, without the secret', async () => {
      const id = await refused('user:ann')
      const instance = `urn:sluice:denial:${id}`
      const { rows } = await jsonOf(['why', '--id', instance, '--policies', file()])
      expect(rows).toMatchObject([{ limiter: 'api', key: 'user:ann', allowed: false }])
    })

    it('finds him by the secret under a flood of other keys, where posts have hashes alone', async () => {
      const id = await refused('user:ann', true)
      const { limiter } = limiterOf('api')
      for (let i = 0; i < 10_000; i += 500)
        await Promise.all(Array.from({ length: 500 }, (_, n) => exhausted(limiter, `user:${i + n}`)))
      process.env['SLUICE_SECRET'] = secret
      const { rows } = await jsonOf(['why', '--id', id, '--policies', file()])
      expect(rows).toMatchObject([{ limiter: 'api', key: 'user:ann', allowed: false }])
      // Of an id that is of no key all are looked at; each look at the clock finds it a second later.
      const now = Date.now
      let looks = 0
      jest.spyOn(Date, 'now').mockImplementation(() => now() + 1000 * looks++)
      const none = '4f0a2b6c8d1e3f507192'
      const { stderr } = await sluice(['why', '--id', none, '--policies', file()], { isTerminal: true })
      const seen = [...stderr.matchAll(/([\d,]+) keys looked at/g)].map(([, n]) =>
        Number(n!.replace(',', '')),
      )
      expect(seen.length).toBeGreaterThan(10)
      expect(seen.toSorted((a, b) => a - b)).toEqual(seen)
      expect(seen.at(-1)).toBeGreaterThanOrEqual(10_001)
    }, 60_000)

    it.each([0, 1])('finds a key in Redis whose denial nobody has posted, of %d days ago', async (days) => {
      await exhausted(limiterOf('api').limiter, 'user:bob')
      const at = Date.now() - days * 86_400_000
      const id = denialId(secret, { limiter: 'api', storedKey: 'user:bob', at })
      process.env['SLUICE_SECRET'] = secret
      expect((await jsonOf(['why', '--id', id, '--policies', file()])).rows).toMatchObject([
        { key: 'user:bob' },
      ])
      const other = await sluice(['why', '--id', id, '--policies', fileOf({ other: { policies: entry } })])
      expect([other.status, other.stderr]).toEqual([
        2,
        "sluice: it is of limiter 'api', key 'user:bob', whose limits --policies does not name\n",
      ])
    })

    it('says where it has looked', async () => {
      const args = ['why', '--id', '4f0a2b6c8d1e3f507192', '--policies', file()]
      expect(await sluice(args)).toEqual({
        status: 1,
        stdout: expect.stringMatching(/^no process has posted a denial '4f0a.*SLUICE_SECRET.*\n$/),
        stderr: '',
      })
      process.env['SLUICE_SECRET'] = secret
      expect((await sluice(args)).stdout).toContain('no key in Redis today')
      const { status, stdout } = await sluice([...args, '--json'])
      expect([status, JSON.parse(stdout)]).toMatchObject([1, { rows: [], remark: expect.any(String) }])
      process.env['SLUICE_SECRET'] = 'short'
      const short = await sluice(args)
      expect([short.status, short.stderr]).toEqual([2, expect.stringContaining('secret must be')])
    })

    it('names the limiter of a key that stores have by its digest alone', async () => {
      const key = 'x'.repeat(300)
      const { status, stdout } = await sluice(['why', '--id', await refused(key), '--policies', file()])
      expect([status, stdout]).toEqual([
        1,
        expect.stringMatching(/^it is of limiter 'api', key 'sha256:.*\n$/),
      ])
    })

    it.each([
      ['an id whose key an operator would write otherwise', 'ann', 'field:user'],
      ['an id whose key looks like a caller of byIp()', ADDRESS, undefined],
    ])('prints cures that act on the key of %s', async (_, key, by) => {
      const { limiter } = limiterOf('api')
      await exhausted(limiter, key)
      process.env['SLUICE_SECRET'] = secret
      const id = denialId(secret, { limiter: 'api', storedKey: key, at: Date.now() })
      const { stdout } = await sluice([
        'why',
        '--id',
        id,
        '--policies',
        fileOf({ api: { policies: entry, by } }),
      ])
      expect((await sluice([...cureIn(stdout), ...WHO])).status).toBe(0)
      expect((await limiter.peek(key)).allowed).toBe(true)
    })

    it.each([
      [[], 'why takes one of KEY, --key, --id'],
      [['k', '--id', 'x'], 'why takes one of KEY, --key, --id'],
      [['--key', 'k', '--id', 'x'], 'why takes one of KEY, --key, --id'],
      [['--id', 'x', '--limiter', 'api'], '--id and --limiter exclude each other: an id is of one limiter'],
    ])('takes a caller, a key or an id: %j', async (args, message) => {
      const { status, stderr } = await sluice(['why', ...args, '--policies', file()])
      expect([status, stderr]).toEqual([2, `sluice: ${message}\n`])
    })
  })

  it.each([
    '\u2028\u2029',
    '',
    ' ',
    '-x',
    '--json',
    '"a"',
    "it's $HOME",
    '::error::x',
    '##vso[x]',
    'a\n\0\u001b[2J\u202eé',
    '\ud800',
    'x'.repeat(300),
  ])('prints cures by which the key %j is read as it was', async (key) => {
    const { limiter } = limiterOf('api')
    await exhausted(limiter, key)
    const args = ['why', `--key=${JSON.stringify(key)}`, '--policies', fileOf({ api: { policies: entry } })]
    const { stdout } = await sluice(args)
    expect((await sluice([...cureIn(stdout), ...WHO])).status).toBe(0)
    expect((await limiter.peek(key)).allowed).toBe(true)
  })

  it('prints cures that act where it has looked, without the URL', async () => {
    const store = redisStore(urlOf(server), { prefix: '-app', groups: 4, denialCache: false })
    const limiter = createLimiter({ name: 'api', policies, store, deadline: '10s', onStoreError: 'throw' })
    closing.push(
      () => store.close(),
      () => limiter.close(),
    )
    await exhausted(limiter, 'user:ann')
    const place = ['--policies', fileOf({ api: { policies: entry } }), '--prefix=-app', '--groups', '4']
    const { stdout } = await sluice(['why', 'user:ann', ...place])
    expect((await sluice([...cureIn(stdout), ...WHO])).status).toBe(0)
    expect((await limiter.peek('user:ann')).allowed).toBe(true)
    await exhausted(limiter, 'user:ann')
    const named = await sluice(['why', 'user:ann', ...place, '--store', urlOf(server)], { url: 'redis://h' })
    expect(named.stdout).toContain(' --groups 4 --store ... --reason ...\n')
    expect(named.stdout).not.toContain('redis:')
  })

  it('refuses a key that begins as a text in JSON and is none', async () => {
    const { status, stderr } = await sluice([
      'why',
      '--key',
      '"a',
      '--policies',
      fileOf({ api: { policies: entry } }),
    ])
    expect([status, stderr]).toEqual([2, 'sluice: --key begins with a quote, and is no text in JSON: "a\n'])
  })

  it('prints keys and words of others without what moves the cursor', async () => {
    const { limiter } = limiterOf('api')
    await limiter.block('user:\u001b[2J', '1h', { reason: '\u202e', by: '::error::' })
    const file = fileOf({ api: { policies: entry } })
    for (const args of [['why', 'user:\u001b[2J', '--policies', file], ['blocked'], ['overrides']]) {
      const { stdout } = await sluice(args)
      expect(stdout).toContain('user:?[2J')
      expect(stdout).not.toMatch(/[^\P{C}\n]|^::/mu)
    }
  })
})

describe('an act', () => {
  it('states what is found and what it will do, acts in all processes, and says how it is then', async () => {
    const { limiter } = limiterOf('api')
    const file = fileOf({ api: { policies: entry } })
    const key = ipKey(ADDRESS)
    await exhausted(limiter, key)
    await limiter.block(key, '1h')
    const act = async (...args: string[]) => {
      const { status, stdout, stderr } = await sluice([...args, '--policies', file, ...WHO])
      expect([status, stderr]).toEqual([0, ''])
      return stdout
    }
    expect(await act('unblock', ADDRESS)).toMatch(
      /^api: ip:203.+\nA call .*is denied .*blocked.*\nEnd the block; what was used still counts\.\nby ann: ticket 42\napi: ip:203.+, done\nA call .*is denied .*\(limit,/,
    )
    expect(await limiter.peek(key)).toMatchObject({ allowed: false, reason: 'limit' })
    await act('reset', ADDRESS)
    expect(await limiter.peek(key)).toMatchObject({ allowed: true, remaining: 2 })
    await act('block', ADDRESS, '--for', '10m')
    expect(await limiter.peek(key)).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(await limiter.overrides()).toMatchObject([{ kind: 'block', key, reason: 'ticket 42', by: 'ann' }])
    expect(await act('exempt', ADDRESS, '--for', '1h')).toContain('Its block goes on: unblock it too.')
    await act('unblock', ADDRESS)
    const fresh = limiterOf('api').limiter
    for (let i = 0; i < 5; i++) expect((await fresh.consume(key)).allowed).toBe(true)
    await act('exempt', ADDRESS, '--remove')
    expect(await limiter.overrides()).toEqual([])
  })

  it.each(['unblock', 'reset', 'block', 'exempt'])('%s with --dry-run changes nothing', async (name) => {
    const { limiter } = limiterOf('api')
    const key = ipKey(ADDRESS)
    await exhausted(limiter, key)
    await limiter.block(key, '1h')
    await limiter.override(key, { factor: 2, until: '1h', reason: 'r', by: 'b' })
    const before = await dump()
    const needs = name === 'block' || name === 'exempt' ? ['--for', '1h'] : []
    const args = [
      name,
      ADDRESS,
      ...needs,
      '--policies',
      fileOf({ api: { policies: entry } }),
      '--reason',
      'r',
    ]
    const { status, stdout } = await sluice([...args, '--dry-run'])
    expect([status, stdout]).toEqual([0, expect.stringMatching(/--dry-run: nothing was done\n$/)])
    expect(await dump()).toEqual(before)
    expect(before.size).toBe(2)
  })

  it.each([80, 120])('reads well on a terminal of %d columns', async (columns) => {
    const { limiter } = limiterOf('api', { penalty: { after: 2, block: '1h' } })
    const key = ipKey(ADDRESS)
    await exhausted(limiter, key)
    await limiter.consume(key)
    await limiter.block('user:ann', '1h', { reason: 'scrapes the catalogue '.repeat(9), by: 'ann' })
    const file = ['--policies', fileOf({ api: { policies: entry } })]
    const exempt = ['exempt', ADDRESS, '--for', '1h', '--reason', 'r', '--dry-run']
    for (const args of [['why', ADDRESS], ['blocked'], ['overrides'], ['top', '--limiter', 'api'], exempt]) {
      const lines = (await sluice([...args, ...file], { columns })).stdout.split('\n')
      // A command is to be copied, so no line of it is broken.
      const broken = lines.filter((line) => line.length > columns && !line.startsWith('  sluice'))
      expect([args, broken]).toEqual([args, []])
    }
    // An exemption wins over the block of a penalty, which has no record.
    expect((await sluice([...exempt, ...file])).stdout).not.toContain('unblock it too')
    await sluice([...exempt.slice(0, -1), '--yes', ...file])
    expect((await limiterOf('api').limiter.consume(key)).allowed).toBe(true)
  })

  it('asks, and takes anything but yes for a no', async () => {
    const { limiter } = limiterOf('api')
    const key = ipKey(ADDRESS)
    await exhausted(limiter, key)
    const args = ['reset', ADDRESS, '--policies', fileOf({ api: { policies: entry } }), '--reason', 'r']
    for (const answer of ['no\n', '\n', 'yes please\n', ' ']) {
      const { status, stdout, stderr } = await sluice(args, { answer })
      expect([status, stderr]).toEqual([1, 'Carry it out? yes or no\n'])
      expect(stdout).toContain('Forget what was used')
      expect((await limiter.peek(key)).allowed).toBe(false)
    }
    expect((await sluice(args, { answer: 'yes\n' })).status).toBe(0)
    expect((await limiter.peek(key)).allowed).toBe(true)
  })

  it('carries nothing out where Ctrl-C answers', async () => {
    const { limiter } = limiterOf('api')
    await exhausted(limiter, ipKey(ADDRESS))
    const args = ['reset', ADDRESS, '--policies', fileOf({ api: { policies: entry } }), '--reason', 'r']
    const { status, stdout } = await sluice(args, { interruptedAt: 'answer' })
    expect([status, stdout]).toEqual([130, expect.not.stringContaining('done')])
    expect((await limiter.peek(ipKey(ADDRESS))).allowed).toBe(false)
  })

  it('is not begun under a further limiter after Ctrl-C, and says where it was carried out', async () => {
    const [first, second] = [limiterOf('first').limiter, limiterOf('second').limiter]
    for (const limiter of [first, second]) await exhausted(limiter, 'user:ann')
    const file = fileOf({ first: { policies: entry }, second: { policies: entry } })
    const args = ['reset', 'user:ann', '--policies', file, ...WHO]
    const { status, stdout } = await sluice(args, { interruptedAt: 'print' })
    expect([status, stdout]).toEqual([130, expect.stringContaining('first: user:ann, done')])
    expect(stdout).not.toContain('second: user:ann, done')
    expect((await first.peek('user:ann')).allowed).toBe(true)
    expect((await second.peek('user:ann')).allowed).toBe(false)
  })

  it.each<[message: string, ...args: string[]]>([
    ['reset needs --reason', 'reset', ADDRESS, '--yes'],
    ['stdin is no terminal', 'reset', ADDRESS, '--reason', 'r'],
    ['block needs --for', 'block', ADDRESS, '--reason', 'r', '--yes'],
    ['exempt needs --for', 'exempt', ADDRESS, '--reason', 'r', '--yes'],
    ['--for and --remove', 'exempt', ADDRESS, '--remove', '--for', '1h', '--reason', 'r', '--yes'],
    ['--for must be', 'block', ADDRESS, '--for', 'soon', '--reason', 'r', '--yes'],
    ['reason must be', 'block', ADDRESS, '--for', '1h', '--reason', 'r'.repeat(201), '--yes'],
    ['name them by --policies', 'reset', ADDRESS, '--reason', 'r', '--yes', '--policies='],
    ["there is no limiter 'apo'", 'reset', ADDRESS, '--limiter', 'apo', '--reason', 'r', '--yes'],
    ['reset takes one of KEY, --key', 'reset', '--reason', 'r', '--yes'],
    ['reset takes one of KEY, --key', 'reset', ADDRESS, '--key', 'k', '--reason', 'r', '--yes'],
  ])('refuses arguments: %s', async (message, ...args) => {
    await exhausted(limiterOf('api').limiter, ipKey(ADDRESS))
    const before = await dump()
    const given = args.filter((arg) => arg !== '--policies=')
    const file = args.length === given.length ? ['--policies', fileOf({ api: { policies: entry } })] : []
    const { status, stderr } = await sluice([...given, ...file])
    expect([status, stderr]).toEqual([2, expect.stringContaining(message)])
    expect(await dump()).toEqual(before)
  })
})

describe('sluice blocked', () => {
  it('lists blocks with a record and those of penalties, and names what it leaves alone', async () => {
    const { limiter } = limiterOf('api')
    await limiter.block('user:banned', '1h', { reason: 'scrapes', by: 'ann' })
    const penalty = { after: 1, block: '1h' } as const
    await exhausted(limiterOf('api', { penalty }).limiter, 'user:penalized')
    await exhausted(limiter, 'user:exhausted')
    await exhausted(limiterOf('other').limiter, 'ann')
    await limiter.consume('x'.repeat(129))
    await limiter.consume('é'.repeat(80))
    await command(server, 'SET', 'sluice:99:api:slidingLog/1:k', 'of a later version')
    await command(server, 'SET', 'sluice-of-others', 'x')
    await command(server, 'SET', 'sluice:x', 'x')
    const later = { id: 'pardon api\n"k"', text: '{}', until: 0, life: 1e9, most: 9 }
    await limiterOf('api').store.records!().write(later, 0)
    const args = ['blocked', '--policies', fileOf({ api: { policies: entry } })]
    const { rows, leftAlone } = await jsonOf(args)
    expect(rows.toSorted((a, b) => String(a['key']).localeCompare(String(b['key'])))).toMatchObject([
      { limiter: 'api', key: 'user:banned', isRecorded: true, reason: 'scrapes', by: 'ann' },
      { limiter: 'api', key: 'user:penalized', isRecorded: false },
    ])
    expect(leftAlone).toEqual({
      'keys of format 99, which this version does not know': 1,
      "keys of limiter 'other', whose limits no --policies names": 1,
      'keys of other software': 1,
      'keys so long that Redis has their digest alone': 2,
      'records that this version does not know': 1,
    })
    const { stdout } = await sluice(args)
    expect(stdout).toMatch(/^key +limiter +until \(UTC\)\nuser:banned +api +\S+ \S+\n {2}ann: scrapes\n/)
    expect(stdout).toContain('a penalty or an older process')
    expect(stdout).toContain("\nleft alone: keys of limiter 'other'")
  })

  it('lists those of one limiter', async () => {
    for (const name of ['api', 'other']) {
      await limiterOf(name).limiter.block('user:banned', '1h')
      await exhausted(limiterOf(name, { penalty: { after: 1, block: '1h' } }).limiter, 'user:penalized')
    }
    await limiterOf('unnamed').limiter.consume('user:ann')
    const file = fileOf({ api: { policies: entry }, other: { policies: entry } })
    const { rows, leftAlone } = await jsonOf(['blocked', '--limiter', 'api', '--policies', file])
    const found = rows.map(({ limiter, key }) => `${String(limiter)} ${String(key)}`)
    expect(found.toSorted()).toEqual(['api user:banned', 'api user:penalized'])
    expect(leftAlone).toEqual({})
  })

  it('finds blocks among many keys, a page at a time', async () => {
    const { limiter } = limiterOf('api')
    await Promise.all(Array.from({ length: 3000 }, (_, i) => limiter.consume(`user:${i}`)))
    const penalized = limiterOf('api', { penalty: { after: 1, block: '1h' } }).limiter
    for (const key of ['user:7', 'user:2999']) await exhausted(penalized, key)
    const seen = await monitor(server)
    const { rows } = await jsonOf(['blocked', '--policies', fileOf({ api: { policies: entry } })])
    const lines = await seen.stop()
    expect(rows.map(({ key }) => String(key)).toSorted()).toEqual(['user:2999', 'user:7'])
    const scans = lines.filter((line) => / "scan" /i.test(line))
    expect(scans.length).toBeGreaterThan(4)
    expect(scans.every((line) => line.endsWith('"COUNT" "500"'))).toBe(true)
    expect(
      lines.filter((line) => / "(?:keys|set|setrange|del|hset|hdel|pexpire|flush\w*)" /i.test(line)),
    ).toEqual([])
  })
})

describe('a limiter that reserves', () => {
  const reserving = { reservations: { max: 3 }, policies: [slidingLog({ limit: 4, window: '1d' })] }
  const file = (): string => fileOf({ api: { policies: [{ ...entry[0], limit: 4 }] } })
  const reserve = (limiter: Limiter, key: string) => limiter.reserve(key, { cost: 2, ttl: '1h' })

  it('is explained by what it has charged and holds, and another caller by what he has', async () => {
    const { limiter } = limiterOf('api', reserving)
    await limiter.consume('user:ann', { cost: 2 })
    await reserve(limiter, 'user:ann')
    await limiterOf('api', { policies: reserving.policies }).limiter.consume('user:bob', { cost: 3 })
    const { rows } = await jsonOf(['why', 'user:ann', '--policies', file()])
    expect(rows).toMatchObject([{ key: 'user:ann', allowed: false, policies: [{ used: 4, held: 2 }] }])
    const other = await jsonOf(['why', 'user:bob', '--policies', file()])
    expect(other.rows).toMatchObject([{ key: 'user:bob', allowed: true, policies: [{ used: 3 }] }])
  })

  it('is reset, blocked and released under its own state', async () => {
    const { limiter } = limiterOf('api', reserving)
    await exhausted(limiter, 'user:ann')
    const act = async (...args: string[]): Promise<void> =>
      expect((await sluice([...args, '--policies', file(), ...WHO])).stderr).toBe('')
    await act('reset', 'user:ann')
    expect(await limiter.peek('user:ann')).toMatchObject({ allowed: true, remaining: 4 })
    await act('block', 'user:ann', '--for', '1h')
    expect(await limiter.peek('user:ann')).toMatchObject({ reason: 'blocked' })
    expect(await limiter.overrides()).toMatchObject([{ kind: 'block', key: 'user:ann' }])
    await act('unblock', 'user:ann')
    expect(await limiter.peek('user:ann')).toMatchObject({ allowed: true })
    await act('exempt', 'user:ann', '--for', '1h')
    expect(await limiterOf('api', reserving).limiter.consume('user:ann', { cost: 9 })).toMatchObject({
      allowed: true,
    })
  })

  it('has the blocks of its penalties listed, once', async () => {
    const { limiter } = limiterOf('api', { ...reserving, penalty: { after: 1, block: '1h' } })
    await exhausted(limiter, 'user:ann')
    await limiterOf('api', { policies: reserving.policies }).limiter.consume('user:ann')
    const { rows } = await jsonOf(['blocked', '--policies', file()])
    expect(rows).toMatchObject([{ limiter: 'api', key: 'user:ann', isRecorded: false }])
  })

  it('has a caller found by the id of a denial, and by the limits that its processes post', async () => {
    fakeOnly()
    const { limiter, store } = limiterOf('api', reserving)
    topKeys(limiter, { fleet: store })
    await reserve(limiter, 'user:ann')
    await reserve(limiter, 'user:ann')
    await reserve(limiter, 'user:ann')
    await jest.advanceTimersByTimeAsync(10_000)
    jest.useRealTimers()
    while ((await fleetLimits(store)).size === 0);
    const secret = 'b7e151628aed2a6abf7158809cf4f3c7'
    const id = denialId(secret, { limiter: 'api', storedKey: 'user:ann', at: Date.now() })
    process.env['SLUICE_SECRET'] = secret
    const { rows } = await jsonOf(['why', '--id', id]).finally(() => delete process.env['SLUICE_SECRET'])
    expect(rows).toMatchObject([{ key: 'user:ann', allowed: false, policies: [{ held: 4 }] }])
    expect((await jsonOf(['top'])).rows).toMatchObject([{ denied: [{ key: 'user:ann', count: 1 }] }])
  })
})

describe('sluice overrides', () => {
  it('lists the records of all limiters without a policy file', async () => {
    await limiterOf('api').limiter.override('a', { exempt: true, until: '1h', reason: 'r1', by: 'ann' })
    await limiterOf('other').limiter.override('b', { limit: 9, until: '1h', reason: 'r2', by: 'bob' })
    await limiterOf('other').limiter.hold('c', '1h', { reason: 'r3' })
    const { rows } = await jsonOf(['overrides'])
    expect(rows).toMatchObject([
      { kind: 'hold', limiter: 'other', key: 'c', reason: 'r3' },
      { kind: 'override', limiter: 'other', key: 'b', reason: 'r2', by: 'bob' },
      { kind: 'override', limiter: 'api', key: 'a', exempt: true, reason: 'r1', by: 'ann' },
    ])
    const { stdout } = await sluice(['overrides', '--limiter', 'api'])
    expect(stdout).toMatch(/^key +limiter +what +until \(UTC\)\na +api +exempt +\S+ \S+\n {2}ann: r1\n$/)
  })

  it('says that there are none', async () => {
    expect((await sluice(['overrides'])).stdout).toBe('no records\n')
  })
})

it('sluice top lists the keys with most denials, as processes have posted them', async () => {
  fakeOnly()
  const { limiter, store } = limiterOf('api')
  topKeys(limiter, { fleet: store })
  const calm = createLimiter({ name: 'calm', policies, store })
  topKeys(calm, { fleet: store })
  closing.push(() => calm.close())
  for (let i = 0; i < 6; i++) await limiter.consume('user:greedy')
  const posted = jest.advanceTimersByTimeAsync(10_000)
  jest.useRealTimers()
  await posted
  const args = ['top', '--limiter', 'api']
  let { rows } = await jsonOf(args)
  while (rows[0]!['processes'] === 0) ({ rows } = await jsonOf(args))
  expect(rows).toMatchObject([{ limiter: 'api', processes: 1, denied: [{ key: 'user:greedy', count: 4 }] }])
  expect((await sluice(args)).stdout).toMatch(
    /^api: top keys of 1 process\nkey +denied +error\nuser:greedy +4 +0\n$/,
  )
  expect((await sluice(['top', '--limiter', 'calm'])).stdout).toBe(
    'calm: top keys of 1 process\nno denials\n',
  )
  expect((await sluice(['top', '--limiter', 'none'])).stdout).toContain('none posts any')
})

it.each([
  [slidingLog({ limit: 2, window: '1d' })],
  [gcra({ limit: 100, window: '1h', burst: 3 }), fixedWindow({ limit: 5, window: '1m', name: 'm' })],
  [gcra({ limit: 4, window: '1h', slots: 4 })],
  [tokenBucket({ limit: 4, window: '1h', capacity: 2, refill: 'interval' })],
  [slidingWindow({ limit: 4, window: '1h', buckets: 6, count: 'weighted' })],
  [calendarWindow({ limit: 4, every: 'month', timeZone: 'Europe/Berlin', anchor: '2025-01-31' })],
])('takes the limits that processes have posted where no file names them: %#', async (...list) => {
  fakeOnly()
  const { limiter, store } = limiterOf('api', { policies: list })
  topKeys(limiter, { fleet: store })
  const denied = await exhausted(limiter, 'user:ann')
  await jest.advanceTimersByTimeAsync(10_000)
  jest.useRealTimers()
  while ((await fleetLimits(store)).size === 0);
  const { rows } = await jsonOf(['why', 'user:ann'])
  const { policy, limit } = denied
  expect(rows).toMatchObject([{ limiter: 'api', key: 'user:ann', allowed: false, policy, limit }])
})

it('reading writes nothing, and does not even drop what has ended', async () => {
  const { limiter } = limiterOf('api')
  await exhausted(limiter, ipKey(ADDRESS))
  await limiter.override('ends', { exempt: true, until: 1, reason: 'r', by: 'b' })
  await limiter.block('user:x', '1h')
  const file = fileOf({ api: { policies: entry } })
  const before = await dump()
  for (const args of [
    ['why', ADDRESS, '--policies', file],
    ['blocked', '--policies', file],
    ['overrides'],
    ['top', '--limiter', 'api'],
  ])
    expect((await sluice(args)).status).toBe(0)
  expect(await dump()).toEqual(before)
})

describe('the store', () => {
  it.each([
    ['none', '', 'or in SLUICE_STORE'],
    ['of a machine', '/run/sluice', 'a machineStore is that of its processes alone'],
    ['of another protocol', 'http://u:hunter2@127.0.0.1', 'a store is redis://'],
    ['with a # in its password', 'redis://u:hunter2#x@127.0.0.1:1', "write '#' as %23"],
    ['with a port that is none', 'postgres://u:hunter2@127.0.0.1:99999/db', 'at most 65535'],
  ])('is refused: %s', async (_, url, message) => {
    const { status, stderr } = await sluice(['overrides'], { url })
    expect([status, stderr]).toEqual([2, expect.stringContaining(message)])
    expect(stderr).not.toContain('hunter2')
  })

  it.each([
    ['--prefix', 'app', 'postgres://127.0.0.1:1/db', 'a store in Postgres has no prefix'],
    ['--groups', '4', 'postgres://127.0.0.1:1/db', 'a store in Postgres has no groups'],
    ['--table', 'limits', 'redis://127.0.0.1:1', 'a store in Redis has no table'],
    ['--schema', 'app', 'redis://127.0.0.1:1', 'a store in Redis has no schema'],
  ])('is refused with %s of the other kind of store', async (flag, value, url, message) => {
    const { status, stderr } = await sluice(['overrides', flag, value], { url })
    expect([status, stderr]).toEqual([2, `sluice: ${message}\n`])
  })

  it('that cannot be reached, or refuses the password, ends with 3 and shows no password', async () => {
    const dead = await sluice(['overrides'], { url: 'redis://:hunter2@127.0.0.1:1' })
    expect([dead.status, dead.stderr]).toEqual([3, expect.stringContaining('ECONNREFUSED')])
    const wrong = await sluice(['overrides'], { url: `redis://u:hunter2@${server.host}:${server.port}` })
    expect([wrong.status, wrong.stderr]).toEqual([3, expect.stringContaining('WRONGPASS')])
    expect(dead.stderr + wrong.stderr).not.toContain('hunter2')
  })

  it('that refuses a command ends with 3 and one line', async () => {
    await command(server, 'ACL', 'SETUSER', 'u', 'on', '>p', '~*', '+@all', '-eval', '-evalsha')
    const url = `redis://u:p@${server.host}:${server.port}`
    const args = ['why', ADDRESS, '--policies', fileOf({ api: { policies: entry } })]
    const { status, stderr } = await sluice(args, { url })
    expect([status, stderr]).toEqual([3, expect.stringMatching(/^sluice: .*(?:NOPERM|no permissions).*\n$/i)])
  })

  it('has the prefix and the groups of its processes', async () => {
    const store = redisStore(urlOf(server), { prefix: 'lim[1]', groups: 4 })
    const limiter = createLimiter({ name: 'api', policies: [fixedWindow({ limit: 1, window: '1d' })], store })
    closing.push(
      () => store.close(),
      () => limiter.close(),
    )
    await limiter.block('user:x', '1h')
    const file = fileOf({ api: { policies: [{ algorithm: 'fixedWindow', limit: 1, window: '1d' }] } })
    const place = ['--policies', file, '--prefix', 'lim[1]', '--groups', '4']
    expect((await jsonOf(['why', 'user:x', ...place])).rows).toMatchObject([{ reason: 'blocked' }])
    expect(await jsonOf(['blocked', ...place])).toMatchObject({
      rows: [{ key: 'user:x' }],
      leftAlone: {},
    })
  })
})
