import { command, commandBytes, monitor, type RedisServer, startRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { FakeClock } from '@sluice/testing'
import {
  createLimiter,
  type Explanation,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Policy,
  slidingLog,
  type Store,
} from '../../src/index.js'
import { redisStore } from '../../src/stores/redis/index.js'

jest.setTimeout(60_000)

const WHO = { reason: 'a "campaign"\n', by: 'ops' }
const HOUR: readonly Policy[] = [slidingLog({ limit: 2, window: '1h' })]
const NAME = '2-per-1h'

let server: RedisServer
beforeAll(async () => void (server = await startRedis()))
afterAll(() => server.stop())

const closings: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closings.splice(0)) await close()
})

let made = 0

/** A limiter over a store of its own. */
function open(store: Store, options: Partial<LimiterOptions> = {}): Limiter {
  const name = `api-${++made}`
  const limiter = createLimiter({ name, policies: HOUR, store, deadline: '5s', ...options })
  closings.push(() => limiter.close())
  return limiter
}

const stores: readonly [string, () => Store][] = [
  ['memory', () => memoryStore({ clock: new FakeClock().now })],
  ['Redis', () => redisStore(`redis://${server.host}:${server.port}`, { prefix: `e${++made}` })],
]

type Cure = Explanation['cures'][number]

/** Carries out a cure. */
const acts: { readonly [act in Cure]: (limiter: Limiter) => Promise<unknown> } = {
  unblock: (limiter) => limiter.unblock('a'),
  reset: (limiter) => limiter.reset('a'),
  removeOverride: (limiter) => limiter.removeOverride('a'),
  override: (limiter) => limiter.override('a', { exempt: true, until: '1h', ...WHO }),
}

interface Case {
  readonly options?: Partial<LimiterOptions>
  readonly cost?: number
  readonly policies?: readonly Policy[]
  /** Brings the key 'a' to where it is explained. */
  readonly given?: (limiter: Limiter) => unknown
  readonly explained: object
  /** Acts each of which lets the call pass, while no other does. */
  readonly cures?: readonly Cure[]
  readonly says: RegExp
}

const full = (limiter: Limiter): Promise<unknown> => limiter.consume('a', { cost: 2 })
const byOperator = { by: 'an operator', until: expect.any(Date) as Date }
const byPenalty = { by: 'a penalty or an older process', until: expect.any(Date) as Date }
const record = (kind: string) => ({ kind, key: 'a', ...WHO })
const words = String.raw`by "ops" \("a \\"campaign\\"\\n"\) until \S+Z`

const cases: Readonly<Record<string, Case>> = {
  'a free key': {
    given: (limiter) => limiter.consume('a'),
    explained: {
      allowed: true,
      key: 'a',
      cost: 1,
      rule: 'default',
      block: undefined,
      records: [],
      policies: [{ name: NAME, used: 1, limit: 2, remaining: 1 }],
    },
    says: /^A call of cost 1 passes under '2-per-1h' \(rule default\); 1 of 2 used under '2-per-1h'\.$/,
  },
  'a key denied by its limit': {
    given: full,
    explained: { allowed: false, reason: 'limit', policy: NAME, rule: 'default', policies: [{ used: 2 }] },
    cures: ['reset', 'override'],
    says: /is denied under '2-per-1h' \(limit, rule default\); 2 of 2 used under '2-per-1h'; reset or override is enough; it passes at \S+Z\.$/,
  },
  'a key blocked by an operator': {
    given: (limiter) => limiter.block('a', '1d', WHO),
    explained: { reason: 'blocked', rule: 'block', block: byOperator, records: [record('block')] },
    cures: ['unblock', 'reset'],
    says: new RegExp(
      `\\(blocked, rule block\\); 0 of 2 used under '2-per-1h'; blocked by an operator until \\S+Z; block ${words}; unblock or reset is enough; it`,
    ),
  },
  'a key blocked by an operator without words': {
    given: (limiter) => limiter.block('a', '1d'),
    explained: { reason: 'blocked', block: byOperator, records: [{ kind: 'block', by: undefined }] },
    cures: ['unblock', 'reset'],
    says: /blocked by an operator until \S+Z; block by "an operator" \("no reason given"\) until/,
  },
  'a blocked key that has used its limit': {
    given: async (limiter) => {
      await full(limiter)
      await limiter.block('a', '1m')
    },
    explained: { reason: 'blocked', rule: 'block', policies: [{ used: 2 }] },
    cures: ['reset'],
    says: /2 of 2 used under '2-per-1h'; .*; reset is enough;/,
  },
  'a key blocked for longer than its used limit': {
    given: async (limiter) => {
      await full(limiter)
      await limiter.block('a', '2h')
    },
    explained: { reason: 'blocked', policies: [{ used: 2 }] },
    cures: ['reset'],
    says: /; reset is enough;/,
  },
  'a blocked key whose hold is longer': {
    given: async (limiter) => {
      await limiter.block('a', '1m')
      await limiter.hold('a', '1h')
    },
    explained: { reason: 'blocked', block: byOperator },
    cures: ['reset'],
    says: /; reset is enough;/,
  },
  'a blocked key whose recorded hold is shorter': {
    given: async (limiter) => {
      await limiter.block('a', '1h')
      await limiter.hold('a', '1m', WHO)
    },
    explained: { reason: 'blocked', records: [{ kind: 'block' }, record('hold')] },
    cures: ['reset'],
    says: /; reset is enough;/,
  },
  'a key blocked by a penalty': {
    options: { penalty: { block: '10m' } },
    given: async (limiter) => {
      await full(limiter)
      await limiter.consume('a')
    },
    explained: { reason: 'blocked', rule: 'block', block: byPenalty, records: [] },
    cures: ['reset', 'override'],
    says: /blocked by a penalty or an older process until \S+Z; reset or override is enough/,
  },
  'a held key': {
    given: (limiter) => limiter.hold('a', '1m', WHO),
    explained: { reason: 'held', rule: 'default', block: undefined, records: [record('hold')] },
    cures: ['reset', 'override'],
    says: new RegExp(`\\(held, rule default\\); .*; hold ${words}; reset or override is enough`),
  },
  'a key held without words': {
    given: (limiter) => limiter.hold('a', '1m'),
    explained: { reason: 'held', records: [] },
    cures: ['reset', 'override'],
    says: /\(held, rule default\); 0 of 2 used under '2-per-1h'; reset or override is/,
  },
  'a raised key': {
    given: (limiter) => limiter.override('a', { limit: 5, until: '1h', ...WHO }),
    cost: 3,
    explained: { allowed: true, rule: 'override', records: [record('override')], policies: [{ limit: 5 }] },
    says: new RegExp(
      `passes under '2-per-1h' \\(rule override\\); 0 of 5 used under '2-per-1h'; override ${words}\\.$`,
    ),
  },
  'a lowered key': {
    given: async (limiter) => {
      await limiter.consume('a')
      await limiter.override('a', { limit: 1, until: '1h', ...WHO })
    },
    explained: { reason: 'limit', rule: 'override', records: [record('override')] },
    cures: ['reset', 'removeOverride', 'override'],
    says: /1 of 1 used under '2-per-1h'; override by .*; reset or removeOverride or override is enough;/,
  },
  'an exempt key': {
    given: async (limiter) => {
      await full(limiter)
      await limiter.override('a', { exempt: true, until: '1h', ...WHO })
    },
    explained: { allowed: true, exempt: true, rule: 'override', policies: [], records: [record('override')] },
    says: new RegExp(`^A call of cost 1 passes uncounted \\(rule override\\); override ${words}\\.$`),
  },
  'a blocked exempt key': {
    given: async (limiter) => {
      await limiter.override('a', { exempt: true, until: '1h', ...WHO })
      await limiter.block('a', '1h', WHO)
    },
    explained: { reason: 'blocked', rule: 'block', records: [record('override'), record('block')] },
    cures: ['unblock', 'reset'],
    says: new RegExp(`rule block.*; override ${words}; block ${words}; unblock or reset is`),
  },
  'several policies, of which two deny': {
    options: {
      policies: [
        slidingLog({ limit: 1, window: '1m', name: 'minute' }),
        slidingLog({ limit: 1, window: '1h', name: 'hour' }),
        slidingLog({ limit: 9, window: '1d', name: 'day' }),
      ],
    },
    given: (limiter) => limiter.consume('a'),
    explained: {
      reason: 'limit',
      policy: 'hour',
      policies: [{ used: 1 }, { used: 1 }, { used: 1, limit: 9, retryAfterMs: 0 }],
    },
    cures: ['reset', 'override'],
    says: /is denied under 'hour' \(limit, rule default\); 1 of 1 used under 'minute'; 1 of 1 used under 'hour'; 1 of 9 used under 'day'; /,
  },
  'a cost that never fits': {
    cost: 3,
    given: (limiter) => limiter.consume('a'),
    explained: { reason: 'cost', retryAfterMs: Infinity },
    cures: ['override'],
    says: /^A call of cost 3 is denied under '2-per-1h' \(cost, rule default\); 1 of 2 used under '2-per-1h'; override is enough\.$/,
  },
  'a cost that never fits on a blocked key': {
    cost: 3,
    given: (limiter) => limiter.block('a', '1h', WHO),
    explained: { reason: 'cost', rule: 'block', block: byOperator },
    says: /\(cost, rule block\); .*; blocked by an operator until .*; no single act is enough\.$/,
  },
  'a limit of 0': {
    options: { policies: [slidingLog({ limit: 0, window: '1h' })] },
    explained: { reason: 'limit', policy: '0-per-1h', retryAfterMs: Infinity },
    cures: ['override'],
    says: /is denied under '0-per-1h' \(limit, rule default\); 0 of 0 used under '0-per-1h'; override is enough\.$/,
  },
  'a limit of 0 on a blocked key': {
    options: { policies: [slidingLog({ limit: 0, window: '1h' })] },
    given: (limiter) => limiter.block('a', '1h', WHO),
    explained: { reason: 'limit', rule: 'block', block: byOperator },
    says: /is denied under '0-per-1h' \(limit, rule block\); .*; no single act is enough\.$/,
  },
  'a plan of other shapes': {
    policies: [fixedWindow({ limit: 1, window: '1d' })],
    given: (limiter) => limiter.consume('a', { policies: [fixedWindow({ limit: 1, window: '1d' })] }),
    explained: { reason: 'limit', rule: 'plan' },
    cures: ['reset', 'override'],
    says: /is denied under '1-per-1d' \(limit, rule plan\); 1 of 1 used under '1-per-1d'; reset/,
  },
  'a cost of 0 on a key charged beyond its limit': {
    cost: 0,
    given: (limiter) => limiter.charge('a', { cost: 3 }),
    explained: { allowed: true, policies: [{ used: 3, limit: 2 }] },
    says: /passes under '2-per-1h' \(rule default\); 3 of 2 used/,
  },
  'shadow mode': {
    options: { enforce: false },
    given: full,
    explained: { allowed: true, wouldDeny: true, reason: 'limit' },
    cures: ['reset', 'override'],
    says: /passes in shadow mode alone under '2-per-1h' \(limit, rule default\); 2 of 2/,
  },
}

describe.each(stores)('explain over %s', (_, storeOf) => {
  it.each(Object.entries(cases))(
    '%s',
    async (_, { options, cost, policies, given, explained, cures = [], says }) => {
      const reached = async () => {
        const store = storeOf()
        closings.push(() => store.close())
        const limiter = open(store, options)
        await given?.(limiter)
        return limiter
      }
      const call = { ...(cost !== undefined && { cost }), ...(policies && { policies }) }
      const limiter = await reached()
      const seen = await limiter.explain('a', call)
      expect(seen).toMatchObject(explained)
      expect(seen.sentence).toMatch(says)
      expect(seen.cures).toEqual(cures)
      expect(seen).toMatchObject(withoutWaits((await limiter.peek('a', call)).toJSON()))
      if (seen.reason === undefined) return
      for (const act of Object.keys(acts) as Cure[]) {
        const cured = await reached()
        await acts[act](cured)
        const { reason } = await cured.peek('a', call)
        expect([act, reason === undefined]).toEqual([act, cures.includes(act)])
      }
    },
  )

  it('refuses what peek refuses, by the same errors', async () => {
    const store = storeOf()
    closings.push(() => store.close())
    const limiter = open(store)
    await expect(limiter.explain(1 as never)).rejects.toMatchObject({ code: 'INVALID_KEY' })
    await expect(limiter.explain('a', { cost: -1 })).rejects.toMatchObject({ code: 'INVALID_COST' })
    await expect(limiter.explain('a', 3 as never)).rejects.toMatchObject({ code: 'INVALID_COST' })
    await expect(limiter.explain('a', { policies: [] })).rejects.toMatchObject({ code: 'INVALID_POLICIES' })
    await expect(limiter.explain('a', { wait: 1 } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await limiter.close()
    await expect(limiter.explain('a')).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

/** A decision without what passes with real time. */
function withoutWaits({ retryAfterMs: _r, resetAfterMs: _s, policies, ...rest }: Record<string, unknown>) {
  const states = policies as readonly Record<string, unknown>[]
  return { ...rest, policies: states.map(({ retryAfterMs: _w, resetAfterMs: _f, ...state }) => state) }
}

it('names the instant at which the call passes', async () => {
  const clock = new FakeClock()
  const limiter = open(memoryStore({ clock: clock.now }))
  await full(limiter)
  const { passesAt, retryAfterMs } = await limiter.explain('a')
  expect(retryAfterMs).toBe(3_600_000)
  clock.pass(Number(passesAt) - clock.now() / 1000 - 1)
  expect((await limiter.peek('a')).allowed).toBe(false)
  clock.pass(1)
  expect((await limiter.peek('a')).allowed).toBe(true)
})

it('is no call that an override has decided, and no event', async () => {
  const limiter = open(memoryStore({ clock: new FakeClock().now }))
  await limiter.override('a', { limit: 5, until: '1h', ...WHO })
  const heard: unknown[] = []
  limiter.on('decision', (event) => void heard.push(event))
  await limiter.explain('a')
  await limiter.peek('a')
  await limiter.override('a', { limit: 6, until: '1h', ...WHO })
  expect((await limiter.overrides())[0]!.lastAppliedAt).toBeUndefined()
  expect(heard).toEqual([])
  await limiter.consume('a')
  expect((await limiter.overrides())[0]!.lastAppliedAt).toBeDefined()
})

it('knows no override that has ended', async () => {
  const clock = new FakeClock()
  const limiter = open(memoryStore({ clock: clock.now }))
  await limiter.override('a', { limit: 5, until: '1m', ...WHO })
  await limiter.hold('a', '1m', WHO)
  clock.pass(60_000)
  expect(await limiter.explain('a')).toMatchObject({ rule: 'default', records: [], allowed: true })
})

it('asks Redis once, changes nothing there, and knows a ban that another process has made', async () => {
  const process = () => {
    const store = redisStore(`redis://${server.host}:${server.port}`, { prefix: 'quiet' })
    closings.push(() => store.close())
    return open(store, { name: 'shared', penalty: { block: '1h' } })
  }
  const [one, other] = [process(), process()]
  await one.block('a', '1h', WHO)
  await one.consume('b', { cost: 2 })
  await one.consume('b')
  await one.override('c', { limit: 5, until: '1h', ...WHO })
  await other.peek('a') // which waits for the first read of records
  const dumps = async () => {
    const keys = await command<string[]>(server, 'KEYS', 'quiet:*')
    return Promise.all(
      keys.toSorted().map(async (key) => [key, String(await commandBytes(server, 'DUMP', key))]),
    )
  }
  const before = await dumps()
  expect(before.length).toBeGreaterThanOrEqual(3)
  const watch = await monitor(server)
  expect((await other.explain('a')).block?.by).toBe('an operator')
  expect((await other.explain('b')).block?.by).toBe('a penalty or an older process')
  expect((await other.explain('c')).rule).toBe('override')
  const lines = await watch.stop()
  expect(lines.filter((line) => /"eval(?:sha)?"/.test(line) && !line.includes('::records:'))).toHaveLength(3)
  expect(await dumps()).toEqual(before)
})

it('explains over a store without records, which knows no overrides', async () => {
  const limiter = open(Object.assign(memoryStore(), { records: undefined }) as unknown as Store)
  await limiter.block('a', '1h')
  const seen = await limiter.explain('a')
  expect(seen).toMatchObject({ block: byPenalty, records: [], cures: ['unblock', 'reset'] })
})

it.each([
  [
    'local',
    { reason: 'limit', degraded: 'unavailable', policies: [{ used: 2 }], cures: [], passesAt: undefined },
  ],
  ['allow', { allowed: true, degraded: 'unavailable', cures: [], passesAt: undefined }],
  ['deny', { reason: 'degraded', degraded: 'unavailable', cures: [], passesAt: undefined }],
] as const)('says in an outage that it is the view of this process: %s', async (mode, explained) => {
  expectWarnings(['STORE_DEGRADED'])
  const gone = await startRedis()
  const store = redisStore(`redis://${gone.host}:${gone.port}`)
  closings.push(() => store.close())
  const limiter = open(store, { onStoreError: mode })
  await limiter.consume('b')
  await gone.stop()
  await full(limiter)
  const seen = await limiter.explain('a')
  expect(seen).toMatchObject(explained)
  expect(seen.sentence).toMatch(
    /; this is how this process sees it, as the store did not decide \(unavailable\)\.$/,
  )
})
