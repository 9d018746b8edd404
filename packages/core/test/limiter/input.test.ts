import { algorithms } from '@sluice/core/store'
import {
  createLimiter,
  createSemaphore,
  fixedWindow,
  gcra,
  InputError,
  leakyBucket,
  memoryStore,
  PolicyError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.js'

const minute = { limit: 10, window: '1m' } as const
const NOT_WHOLE: unknown[] = [NaN, -1, 1.5, '3', Infinity, -Infinity, 2 ** 53, 1n, null, {}, [], true]
const codeOf = (make: () => unknown): unknown => {
  try {
    make()
  } catch (error) {
    return error instanceof PolicyError || error instanceof InputError ? error.code : error
  }
  return 'nothing thrown'
}

/** Those whose window is an option. */
const { calendarWindow: _, ...windowed } = algorithms

describe.each(Object.entries(windowed))('%s', (_, factory) => {
  it.each([...NOT_WHOLE, undefined])('refuses a limit of %p', (limit) => {
    expect(codeOf(() => factory({ limit: limit as number, window: '1m' }))).toBe('INVALID_LIMIT')
  })

  it.each([...NOT_WHOLE, 0, undefined, '', '1', '1 m', '-1s', '1.5s', '0s', '1w', '366d', '1M'])(
    'refuses a window of %p',
    (window) => {
      expect(codeOf(() => factory({ limit: 1, window: window as number }))).toBe('INVALID_WINDOW')
    },
  )

  it.each(['', 'é', 'a\nb', 'x'.repeat(65), 1, null])('refuses the name %p', (name) => {
    expect(codeOf(() => factory({ ...minute, name: name as string }))).toBe('INVALID_NAME')
  })

  it('takes windows from 1 ms to 365 days', () => {
    expect([
      factory({ limit: 1, window: '1ms', ...one(factory) }).windowMs,
      factory({ limit: 1, window: '365d' }).windowMs,
    ]).toEqual([1, 31_536_000_000])
  })
})

/** One millisecond has no ten buckets in some units; one always fits. */
const one = (factory: unknown) => (factory === slidingWindow ? { buckets: 1 } : {})

describe('capacity and burst', () => {
  it.each([...NOT_WHOLE.filter((value) => value !== undefined), 0])('refuse %p', (value) => {
    const capacity = value as number
    expect([
      codeOf(() => tokenBucket({ ...minute, capacity })),
      codeOf(() => leakyBucket({ ...minute, capacity })),
      codeOf(() => gcra({ ...minute, burst: capacity })),
    ]).toEqual(['INVALID_CAPACITY', 'INVALID_CAPACITY', 'INVALID_CAPACITY'])
  })

  it('name the largest that is exact for the window', () => {
    const largest = Math.floor(2 ** 52 / 3.6e9)
    expect(gcra({ limit: 1, window: '1h', burst: largest }).capacity).toBe(largest)
    expect(() => gcra({ limit: 1, window: '1h', burst: largest + 1 })).toThrow(`at most ${largest}`)
    expect(() => tokenBucket({ limit: 142_809, window: '365d' })).toThrow('at most 142808')
  })
})

describe('slidingWindow', () => {
  it.each([...NOT_WHOLE.filter((value) => value !== undefined), 0, 1001, 7])(
    'refuses %p buckets',
    (buckets) => {
      expect(codeOf(() => slidingWindow({ limit: 1, window: '10s', buckets: buckets as number }))).toBe(
        'INVALID_BUCKETS',
      )
    },
  )

  it('counts a weighted window above one hour in milliseconds, which buckets must divide', () => {
    const window = 3_600_001
    expect(slidingWindow({ limit: 1, window, buckets: 125 }).buckets).toBe(125)
    expect(codeOf(() => slidingWindow({ limit: 1, window, buckets: 125, count: 'weighted' }))).toBe(
      'INVALID_BUCKETS',
    )
  })

  it('refuses an unknown count, tokenBucket an unknown refill', () => {
    expect(codeOf(() => slidingWindow({ ...minute, count: 'half' as 'whole' }))).toBe('INVALID_OPTION')
    expect(codeOf(() => tokenBucket({ ...minute, refill: 'slow' as 'greedy' }))).toBe('INVALID_OPTION')
  })

  it('names the largest limit that weighted buckets can count exactly', () => {
    const limit = Math.floor(2 ** 51 / 3.6e9) + 1
    const weighted = { limit, window: '1h', buckets: 1, count: 'weighted' } as const
    expect(() => slidingWindow(weighted)).toThrow(`at most ${limit - 1}`)
    expect(slidingWindow({ ...weighted, count: 'whole' }).limit).toBe(limit)
  })
})

describe('slidingLog', () => {
  it('takes limits up to 100,000', () => {
    expect(slidingLog({ limit: 100_000, window: '1m' }).limit).toBe(100_000)
    expect(codeOf(() => slidingLog({ limit: 100_001, window: '1m' }))).toBe('INVALID_LIMIT')
  })
})

describe('createLimiter', () => {
  it.each([
    ['NAME_REQUIRED', { policies: [gcra(minute)], store: memoryStore() }],
    ['INVALID_NAME', { policies: [gcra(minute)], name: 'a\r\nb' }],
    ['INVALID_POLICIES', { policies: [] }],
    [
      'INVALID_POLICIES',
      { policies: Array.from({ length: 11 }, (_, i) => gcra({ ...minute, name: `p${i}` })) },
    ],
    ['INVALID_POLICIES', { policies: gcra(minute) }],
    ['INVALID_POLICIES', { policies: [{ limit: 1, window: '1s' }] }],
    ['INVALID_POLICIES', {}],
    ['DUPLICATE_NAME', { policies: [gcra({ ...minute, name: 'a' }), fixedWindow({ ...minute, name: 'a' })] }],
    ['INVALID_OPTION', { policies: [gcra(minute)], enforce: 'no' }],
    ['INVALID_OPTION', undefined],
  ])('throws %s', (code, options) => {
    expect(codeOf(() => createLimiter(options as never))).toBe(code)
  })
})

describe('the options of a policy', () => {
  it.each([undefined, null, 'minute'])('are refused when they are %p', (options) => {
    const message = `gcra takes an object of options, got ${JSON.stringify(options)}`
    expect(() => gcra(options as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', message }))
  })
})

describe('the option store', () => {
  const create = (options: object) => () => createLimiter({ policies: [gcra(minute)], name: 'a', ...options })

  it.each([
    [null, 'got null'],
    ['redis://user:secret@host:6379', 'write redisStore(url), got "redis://…@host:6379"'],
    ['redis://user:secret\n\u2028secret@host:6379', 'write redisStore(url), got "redis://…@host:6379"'],
    ['redis://user:a/@secret@host:6379', 'write redisStore(url), got "redis://…@host:6379"'],
    [memoryStore, 'call it, got a function'],
    [{ sendCommand() {}, on() {} }, 'write redisStore(client)'],
    [{ increment() {}, decrement() {} }, 'those of other packages'],
    [{ consume() {} }, 'those of other packages'],
    [Promise.resolve(memoryStore()), 'await it'],
    [{}, 'got an object'],
    [
      { ...memoryStore(), keyspace() {}, now() {}, close() {}, local: false },
      "add guard, imported from '@sluice/core/store'",
    ],
    [6379, 'got 6379'],
  ])('is refused as %p with what to write', (store, advice) => {
    const error = expect.objectContaining({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(advice),
    })
    expect(create({ store })).toThrow(error)
    expect(() => createSemaphore({ name: 'a', limit: 1, store: store as never })).toThrow(error)
  })
})

describe('memoryStore', () => {
  it.each([...NOT_WHOLE, 0, 2 ** 23 + 1])('refuses maxKeys of %p', (maxKeys) => {
    expect(codeOf(() => memoryStore({ maxKeys: maxKeys as number }))).toBe('INVALID_OPTION')
  })

  it('refuses a clock that is no function', () => {
    expect(codeOf(() => memoryStore({ clock: 1 as never }))).toBe('INVALID_OPTION')
  })
})

describe('a call', () => {
  const limiter = createLimiter({ policies: [gcra(minute)] })

  it.each(NOT_WHOLE)('throws for a cost of %p and charges nothing', async (cost) => {
    const options = { cost: cost as number }
    for (const call of ['consume', 'peek', 'acquire', 'refund', 'charge'] as const) {
      await expect(limiter[call]('k', options)).rejects.toMatchObject({
        name: 'InputError',
        code: 'INVALID_COST',
      })
    }
    expect((await limiter.peek('k')).remaining).toBe(10)
  })

  it.each([null, 3, '3', true])('throws for %p in the place of its options', async (options) => {
    for (const call of ['consume', 'peek', 'acquire', 'refund', 'charge'] as const) {
      await expect(limiter[call]('k', options as never)).rejects.toMatchObject({
        name: 'InputError',
        code: 'INVALID_COST',
        message: expect.stringMatching(/^the options of a call must be an object like \{ cost: 3 \}, got /),
      })
    }
    expect((await limiter.peek('k')).remaining).toBe(10)
  })

  it.each([undefined, null, 1, {}, Symbol('k')])('throws for the key %p', async (key) => {
    for (const call of ['consume', 'peek', 'acquire', 'refund', 'charge', 'reset'] as const) {
      await expect(limiter[call](key as string)).rejects.toMatchObject({ code: 'INVALID_KEY' })
    }
  })

  it('throws for a key of more than 8,192 UTF-16 units, whose digest would hold up the process', async () => {
    for (const call of ['consume', 'peek', 'acquire', 'refund', 'charge', 'reset'] as const) {
      const key = `${'é'.repeat(8192)}x`
      await expect(limiter[call](key)).rejects.toMatchObject({
        name: 'InputError',
        code: 'INVALID_KEY',
        message: 'key must be at most 8192 UTF-16 units long, got 8193',
      })
    }
    const longest = ['a', 'b'].map((end) => '€'.repeat(8191) + end)
    for (const key of longest)
      expect(await limiter.consume(key, { cost: 10 })).toMatchObject({ allowed: true })
    for (const key of longest) expect(await limiter.consume(key)).toMatchObject({ allowed: false })
  })

  it.each([-1, NaN, '1 day', 86_400_001])('throws for a maxWait of %p', async (maxWait) => {
    const call = limiter.acquire('k', { maxWait: maxWait as number })
    await expect(call).rejects.toMatchObject({ code: 'INVALID_DURATION' })
  })

  it.each([0, -1, NaN, '1 day', '366d'])('throws for a block or hold of %p', async (duration) => {
    await expect(limiter.block('k', duration as number)).rejects.toMatchObject({ code: 'INVALID_DURATION' })
    await expect(limiter.hold('k', duration as number)).rejects.toMatchObject({ code: 'INVALID_DURATION' })
  })

  it('says what was expected and what came', () => {
    expect(() => gcra({ limit: -1, window: '1s' })).toThrow(
      'limit must be a whole number from 0 to 2^52, got -1',
    )
  })
})
