import { FakeClock } from '@sluice/testing'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  type Limiter,
  memoryStore,
  type Policy,
  slidingLog,
} from '../../../src/index.js'

const MAX_KEYS = 10_000
const CALLERS = 1000
const FLOOD = 2 * MAX_KEYS

/** A store with two limiters, the second of which may be flooded in place of the first. */
function open(policies: readonly Policy[], maxKeys = MAX_KEYS) {
  const clock = new FakeClock()
  const store = memoryStore({ maxKeys, clock: clock.now })
  const limiter = createLimiter({ name: 'limited', store, policies })
  const other = createLimiter({ name: 'other', store, policies: [slidingLog({ limit: 10, window: '1h' })] })
  const warnings: string[] = []
  limiter.on('warning', ({ message }) => warnings.push(message))
  other.on('warning', () => {})
  return { clock, store, limiter, other, warnings }
}

function isAllowed(limiter: Limiter, key: string, options?: Parameters<Limiter['decide']>[1]): boolean {
  return (limiter.decide(key, options) as Decision).allowed
}

/** Callers that spend all they have, and are denied so many times. */
function exhaust(limiter: Limiter, cost: number, denials: number, callers = CALLERS): void {
  for (let i = 0; i < callers; i++) {
    void limiter.decide(`caller:${i}`, { cost })
    for (let d = 0; d < denials; d++) void limiter.decide(`caller:${i}`)
  }
}

function flood(limiter: Limiter, keys: number, costs: readonly number[]): void {
  for (let i = 0; i < keys; i++) for (const cost of costs) void limiter.decide(`flood:${i}`, { cost })
}

function stillDenied(limiter: Limiter, callers = CALLERS): number {
  let denied = 0
  for (let i = 0; i < callers; i++) denied += isAllowed(limiter, `caller:${i}`) ? 0 : 1
  return denied
}

describe('callers that were exhausted and denied three times stay so in a flood of new keys', () => {
  const perHour = (limit: number) => [gcra({ limit, window: '1h' })]

  it('that call up to three times', () => {
    const { limiter } = open(perHour(10))
    exhaust(limiter, 10, 3)
    flood(limiter, FLOOD, [1, 1, 1])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })

  it('with a limit of 1', () => {
    const { limiter } = open(perHour(1))
    exhaust(limiter, 1, 3)
    flood(limiter, FLOOD, [1, 1, 1])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })

  it('that spend all they have', () => {
    const { limiter } = open(perHour(10))
    exhaust(limiter, 10, 3)
    flood(limiter, FLOOD, [10, 1, 1])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })

  it('that were charged more than they may have', () => {
    const { limiter } = open(perHour(10))
    for (let i = 0; i < CALLERS; i++) void limiter.charge(`caller:${i}`, { cost: 15 })
    exhaust(limiter, 10, 3)
    flood(limiter, FLOOD, [10, 1, 1])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })

  it.each([[1], [10]])('of another limiter of the store, at a cost of %i', (cost) => {
    const { limiter, other } = open(perHour(10))
    exhaust(limiter, 10, 3, 6 * CALLERS)
    flood(other, FLOOD, [cost, 1, 1])
    expect(stillDenied(limiter, 6 * CALLERS)).toBeGreaterThanOrEqual(6 * 990)
  })

  it('after one call ever under a tier with a limit of 1', () => {
    const perDay = (limit: number) => [fixedWindow({ limit, window: '1d' })]
    const { limiter } = open(perDay(10))
    void limiter.decide('slow', { policies: perDay(1) })
    exhaust(limiter, 10, 3)
    flood(limiter, FLOOD, [1, 1, 1])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })

  it('in a store that holds few others', () => {
    const { limiter } = open(perHour(1), 1.1 * CALLERS)
    exhaust(limiter, 1, 3)
    flood(limiter, 10 * CALLERS, [1, 1, 1])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })

  it('beside the states of hundreds of other limiters', () => {
    const { limiter, store } = open(perHour(10))
    exhaust(limiter, 10, 3)
    for (let i = 0; i < 500; i++) {
      const one = createLimiter({ name: `one${i}`, store, policies: perHour(10) })
      one.on('warning', () => {})
      void one.decide('k')
    }
    flood(limiter, FLOOD, [1, 1, 1])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })
})

it('keys that keep marks of settled reservations alone go before those that have spent something', async () => {
  const { clock, store, other } = open([gcra({ limit: 1, window: '1h' })], 20)
  const policies = [gcra({ limit: 100, window: '1s' })]
  const reserving = createLimiter({ name: 'reserving', store, policies, reservations: {} })
  reserving.on('warning', () => {})
  for (let i = 0; i < 10; i++)
    await (await reserving.reserve(`marked:${i}`, { cost: 1, ttl: '10s' })).reservation!.settle(1)
  clock.pass(5000)
  await reserving.reserve('open', { cost: 1, ttl: '1h' })
  const evicted: string[] = []
  for (const limiter of [reserving, other]) limiter.on('evicted', ({ key }) => evicted.push(key))
  for (let i = 0; i < 19; i++) await other.consume(`spent:${i}`, { cost: 10 })
  expect(evicted.toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => `marked:${i}`))
})

describe('a new key in a flood', () => {
  it.each([
    [1, [1]],
    [1, [1, 1, 1]],
    [10, [1]],
    [10, [1, 1, 1]],
    [100, [1]],
    [100, [1, 1, 1]],
  ])(
    'that calls once in a tenth of maxKeys flood calls passes at most 3 x its limit of %i',
    (limit, costs) => {
      const { limiter } = open([gcra({ limit, window: '1h' })], 1000)
      flood(limiter, 1000, costs)
      let passed = 0
      for (let i = 0, calls = 0; i < 30_000; i++) {
        for (const cost of costs) {
          void limiter.decide(`more:${i}`, { cost })
          if (++calls % 100 === 0) passed += isAllowed(limiter, 'new') ? 1 : 0
        }
      }
      expect(passed).toBeLessThanOrEqual(3 * limit)
    },
  )
})

describe('a ban', () => {
  it.each(['limited', 'other'])(
    'goes only where nothing else can, whichever limiter is flooded (%s)',
    async (name) => {
      const { limiter, other } = open([gcra({ limit: 1, window: '1h' })], 1000)
      for (let i = 0; i < 999; i++) await limiter.block(`caller:${i}`, '1d')
      flood(name === 'other' ? other : limiter, 20_000, [1, 1, 1])
      expect(stillDenied(limiter, 999)).toBe(999)
    },
  )

  it.each([10, 500, 999])(
    'outlives the blocks of penalties, where %i of 1000 keys are banned',
    async (bans) => {
      const store = memoryStore({ maxKeys: 1000, clock: new FakeClock().now })
      const options = { name: 'limited', store, policies: [gcra({ limit: 1, window: '1h' })] }
      const limiter = createLimiter({ ...options, penalty: { block: '30d' } })
      limiter.on('warning', () => {})
      for (let i = 0; i < bans; i++) await limiter.block(`caller:${i}`, '1d')
      flood(limiter, 5000, [1, 1])
      expect(stillDenied(limiter, bans)).toBe(bans)
      const last = await limiter.peek('flood:4999')
      expect([store.size, last.reason]).toEqual([1000, 'blocked'])
    },
  )

  it('gives way where there is nothing but bans', async () => {
    const { limiter, store } = open([gcra({ limit: 1, window: '1h' })], 100)
    for (let i = 0; i < 200; i++) await limiter.block(`caller:${i}`, '1d')
    expect(store.size).toBe(100)
    expect(isAllowed(limiter, 'new')).toBe(true)
  })
})

describe('the mark of denials', () => {
  it.each([
    ['one policy', [gcra({ limit: 10, window: '1h' })]],
    ['two', [gcra({ limit: 10, window: '1h' }), fixedWindow({ limit: 100, window: '1d' })]],
  ])('keeps those who went on before those who only spent all: under %s', (_, policies) => {
    const { limiter } = open(policies)
    exhaust(limiter, 10, 3)
    flood(limiter, FLOOD, [10])
    expect(stillDenied(limiter)).toBeGreaterThanOrEqual(990)
  })

  it('is read by no decision', () => {
    const { limiter, clock } = open([gcra({ limit: 2, window: '1s' })])
    for (let i = 0; i < 20; i++) void limiter.decide('k')
    clock.pass(1000)
    expect([1, 2, 3].map(() => isAllowed(limiter, 'k'))).toEqual([true, true, false])
  })
})

describe('STORE_FULL', () => {
  it('reports that exhausted callers were forgotten, and how large maxKeys had to be', async () => {
    const { limiter, warnings } = open([gcra({ limit: 1, window: '1h' })], 100)
    for (let i = 0; i < 800; i++) void limiter.decide(`k${i}`)
    await Promise.resolve()
    expect(warnings[0]).toContain('exhausted callers')
    const needed = warnings.map((message) => Number(/had to be (\d+)/.exec(message)?.[1]))
    expect(needed).toEqual([101, 202, 404])
  })

  it('is reported once for each doubling, however many lists of shapes callers bring', async () => {
    const { limiter, warnings } = open([gcra({ limit: 1, window: '1h' })], 100)
    for (let i = 0; i < 200; i++) {
      const policies = [gcra({ limit: 1, window: `${3600 + i}s` })]
      for (let key = 0; key < 40; key++) void limiter.decide(`k${key}`, { policies })
    }
    await Promise.resolve()
    const needed = warnings
      .filter((message) => message.includes('exhausted'))
      .map((message) => /\d+$/.exec(message)![0])
    expect(needed.map((each) => Math.floor(Math.log2(Number(each))))).toEqual([6, 7, 8, 9, 10, 11, 12])
  })

  it('reports that keys are forgotten before exhausted callers are', async () => {
    const { limiter, warnings } = open([gcra({ limit: 10, window: '1h' })], 100)
    for (let i = 0; i < 800; i++) void limiter.decide(`k${i}`)
    await Promise.resolve()
    expect(warnings).toEqual([
      'the memory store holds maxKeys keys and begins to forget some that still count',
    ])
  })
})
