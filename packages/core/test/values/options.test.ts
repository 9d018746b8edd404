import {
  createLimiter,
  createSemaphore,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.js'
import { redisStore } from '../../src/stores/redis/index.js'
import { type About, duration, func, oneOf, readOptions, required, whole } from '../../src/values/options.js'

const minute = { limit: 10, window: '1m' } as const
const policies = [gcra(minute)]
const limiter = createLimiter({ policies })
const semaphore = createSemaphore({ limit: 1 })
const inLimiter = (name: string) => (given: object) => createLimiter({ policies, [name]: given })
const withRedis = (options: object) => redisStore('redis://127.0.0.1:1', { lazy: true, ...options })

/** What takes options, how its messages name it, one of its names misspelt, and that name. */
const OBJECTS: [what: string, take: (given: object) => unknown, misspelt: object, name: string][] = [
  ['fixedWindow', (given) => fixedWindow(given as never), { ...minute, names: 'a' }, 'name'],
  ['slidingLog', (given) => slidingLog(given as never), { ...minute, limits: 1 }, 'limit'],
  ['slidingWindow', (given) => slidingWindow(given as never), { ...minute, bucket: 5 }, 'buckets'],
  ['tokenBucket', (given) => tokenBucket(given as never), { ...minute, refil: 'greedy' }, 'refill'],
  ['leakyBucket', (given) => leakyBucket(given as never), { ...minute, Capacity: 5 }, 'capacity'],
  ['gcra', (given) => gcra(given as never), { ...minute, brust: 5 }, 'burst'],
  [
    'createLimiter',
    (given) => createLimiter(given as never),
    { policies, onStorError: 'deny' },
    'onStoreError',
  ],
  ['createSemaphore', (given) => createSemaphore(given as never), { limit: 1, leases: '1s' }, 'lease'],
  ['memoryStore', (given) => memoryStore(given), { maxKey: 5 }, 'maxKeys'],
  ['redisStore', withRedis, { keyPrefix: 'x:' }, 'prefix'],
  ['denialCache', (given) => withRedis({ denialCache: given }), { maxage: 1 }, 'maxAge'],
  ['leases', inLimiter('leases'), { ttl: '1s', sizes: 1 }, 'size'],
  ['onStoreError', inLimiter('onStoreError'), { mode: 'local', shares: 3 }, 'share'],
  ['penalty', inLimiter('penalty'), { block: '1m', factr: 2 }, 'factor'],
]

describe.each(OBJECTS)('%s', (what, take, misspelt, name) => {
  const wrong = Object.keys(misspelt).at(-1)!
  const code = what === 'penalty' ? 'INVALID_PENALTY' : 'INVALID_OPTION'

  it('refuses an option that it does not have, and suggests the nearest name', () => {
    const message = expect.stringMatching(
      `^there is no option '${wrong}' of ${what}: did you mean '${name}'\\?`,
    )
    expect(() => take(misspelt)).toThrow(expect.objectContaining({ name: 'PolicyError', code, message }))
  })

  it('suggests none where none is near, but the command that finds those of other packages', () => {
    const foreign = { ...misspelt, [wrong]: undefined, skipFailedRequests: true }
    const found = 'npx @sluice/cli option skipFailedRequests finds that of another package'
    const message = `there is no option 'skipFailedRequests' of ${what}: ${found}`
    expect(() => take(foreign)).toThrow(expect.objectContaining({ code, message }))
  })

  it('takes an option that is undefined as left out', () => {
    expect(() => take({ ...misspelt, [wrong]: undefined })).not.toThrow()
  })
})

describe('a call', () => {
  it.each(['consume', 'peek', 'refund', 'charge', 'acquire'] as const)(
    'refuses an option that %s does not have, and charges nothing',
    async (operation) => {
      const call = limiter[operation](operation, { costs: 3 } as never)
      await expect(call).rejects.toMatchObject({
        name: 'InputError',
        code: 'INVALID_OPTION',
        message: expect.stringContaining("there is no option 'costs' of a call: did you mean 'cost'?"),
      })
      expect((await limiter.peek(operation)).remaining).toBe(10)
    },
  )

  it('refuses such an option in decide too', () => {
    expect(() => limiter.decide('decide', { costs: 3 } as never)).toThrow("did you mean 'cost'?")
    expect(limiter.decide('decide', { cost: 10 })).toMatchObject({ allowed: true })
  })

  it.each([
    ['reset', (options: never) => limiter.reset('k', options)],
    ['block', (options: never) => limiter.block('k', '1m', options)],
    ['hold', (options: never) => limiter.hold('k', '1m', options)],
    ['unblocked', (options: never) => semaphore.acquire('k', options)],
  ])('refuses such an option of %s', async (_, call) => {
    await expect(call({ policy: [] } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

describe('a declaration', () => {
  const about: About = { what: 'make', prefix: 'made.' }
  const declaration = {
    size: whole(1, 10, 5),
    life: required(duration('1ms', '1h')),
    kind: oneOf(['a', 'b'], 'a'),
    act: func<() => void>('that acts'),
  }

  it('gives the default of what is left out, and durations in milliseconds', () => {
    expect(readOptions(declaration, { life: '1m' }, about)).toEqual({
      size: 5,
      life: 60_000,
      kind: 'a',
      act: undefined,
    })
    expect(readOptions(declaration, { life: 7, size: 10, kind: 'b' }, about)).toMatchObject({
      size: 10,
      life: 7,
      kind: 'b',
    })
  })

  it.each([
    [{ life: 1, size: 11 }, 'INVALID_OPTION', 'made.size must be a whole number from 1 to 10, got 11'],
    [
      { life: 1, size: '3' },
      'INVALID_OPTION',
      'made.size must be a whole number from 1 to 10, got "3"; write 3',
    ],
    [{ life: 1, kind: 'c' }, 'INVALID_OPTION', `made.kind must be 'a' or 'b', got "c"`],
    [{ life: 1, act: 1 }, 'INVALID_OPTION', 'made.act must be a function that acts, got 1'],
    [{ life: '2h' }, 'INVALID_DURATION', /^made.life must be .* from 1 ms to 1h, got "2h"$/],
    [{}, 'INVALID_DURATION', /^made.life must be .*, got undefined$/],
    [3, 'INVALID_OPTION', 'make takes an object of options, got 3'],
    [[], 'INVALID_OPTION', 'make takes an object of options, got an array of 0'],
  ])('refuses %j', (given, code, message) => {
    const expected = typeof message === 'string' ? message : expect.stringMatching(message)
    expect(() => readOptions(declaration, given as object, about)).toThrow(
      expect.objectContaining({ code, message: expected }),
    )
  })

  it('throws everything under one code where it is given', () => {
    const make = () => readOptions(declaration, { life: '2h' }, { ...about, code: 'INVALID_PENALTY' })
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_PENALTY' }))
  })
})
