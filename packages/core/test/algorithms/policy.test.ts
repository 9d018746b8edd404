import {
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.js'
import { FASTEST } from '../../src/algorithms/debt/debt.js'
import { State } from '../../src/algorithms/contract/state.js'
import { haveEqualNumbers } from '../../src/algorithms/contract/policy.js'
import { CONTRACT, CONTRACT_NUMBER } from '../../src/values/contract.js'

const minute = { window: '1m' } as const

describe('a policy', () => {
  it('is recognised by the number of its contract', () => {
    expect(gcra({ ...minute, limit: 1 })[CONTRACT]).toBe(CONTRACT_NUMBER)
  })

  it.each<[string, (options: { limit: number; window: '1m' }) => Policy]>([
    ['fixedWindow', fixedWindow],
    ['slidingLog', slidingLog],
    ['slidingWindow', slidingWindow],
    ['tokenBucket', tokenBucket],
    ['leakyBucket', leakyBucket],
    ['gcra', gcra],
    ['policy.with', (options) => gcra({ ...minute, limit: 1 }).with(options)],
  ])('names the maker of an option that is not one: %s', (name, make) => {
    const options = { ...minute, limit: 1, wrong: 1 }
    expect(() => make(options)).toThrow(`there is no option 'wrong' of ${name}`)
  })

  it.each<[string, Policy]>([
    ['gcra', gcra({ ...minute, limit: 1 })],
    ['whole buckets', slidingWindow({ ...minute, limit: 1 })],
    ['weighted buckets', slidingWindow({ ...minute, limit: 1, count: 'weighted' })],
  ])('lets booked units be served at any time: %s', (_, policy) => {
    expect(policy.algorithm.leasing!.end(policy, 0)).toBe(Infinity)
  })

  it('notes the largest limit that has refilled a bucket, until the bucket is full', () => {
    const of = (limit: number) => tokenBucket({ ...minute, limit, capacity: 5, refill: 'interval' })
    const state = new State(new Float64Array(8))
    for (const limit of [5, 9, 7]) of(limit).algorithm.admit(state, of(limit), 0, 1)
    expect(state.get(FASTEST)).toBe(9)
    of(7).algorithm.renew!(state, of(7))
    expect(state.get(FASTEST)).toBe(7)
  })

  it('has a shape of its algorithm, its window in milliseconds and its buckets, if it has any', () => {
    expect(fixedWindow({ ...minute, limit: 1 }).shape).toBe('fixed-window/60000')
    expect(slidingWindow({ ...minute, limit: 1, buckets: 6 }).shape).toBe('sliding-window/60000/6')
  })

  it('knows whether its name was given', () => {
    const named = gcra({ ...minute, limit: 1, name: 'calls' })
    const unnamed = gcra({ ...minute, limit: 1 })
    expect([named, unnamed].map(({ name, isNamed }) => [name, isNamed])).toEqual([
      ['calls', true],
      ['1-per-1m', false],
    ])
  })

  it('refuses a name that is not printable, and says which', () => {
    expect(() => gcra({ ...minute, limit: 1, name: '' })).toThrow(
      'name must be 1 to 64 characters of printable ASCII, got ""',
    )
  })

  it('may have any limit up to 2^52 where no number is multiplied by the window', () => {
    expect(fixedWindow({ ...minute, limit: 2 ** 52 }).limit).toBe(2 ** 52)
    expect(() => fixedWindow({ ...minute, limit: 2 ** 52 + 1 })).toThrow('limit must be a whole number')
  })

  it('holds nothing where its limit is 0, and what it was made with once it has another limit', () => {
    const bucket = tokenBucket({ ...minute, limit: 0, capacity: 5 })
    const suspended = [bucket, gcra({ ...minute, limit: 0 }), fixedWindow({ ...minute, limit: 0 })]
    expect(suspended.map(({ capacity }) => capacity)).toEqual([0, 0, 0])
    expect(suspended.map((policy) => policy.with({ limit: 9 }).capacity)).toEqual([5, 9, 9])
  })

  it('keeps its capacity where it gets another limit, and refuses one that is no number of units', () => {
    const burst = gcra({ ...minute, limit: 3, burst: 2 })
    expect(burst.with({ limit: 9 })).toMatchObject({ limit: 9, capacity: 2, windowMs: 60_000 })
    expect(gcra({ ...minute, limit: 3 }).with({ limit: 9 }).capacity).toBe(3)
    expect(fixedWindow({ ...minute, limit: 3 }).with({ limit: 9 }).capacity).toBe(9)
    expect(
      fixedWindow({ ...minute, limit: 3 })
        .with({ limit: 2 })
        .with({ limit: 9 }).capacity,
    ).toBe(9)
    expect(
      fixedWindow({ ...minute, limit: 3 })
        .with({ capacity: 2 })
        .with({ limit: 9 }).capacity,
    ).toBe(2)
    expect(
      fixedWindow({ ...minute, limit: 0 })
        .with({ limit: 0 })
        .with({ limit: 9 }).capacity,
    ).toBe(9)
    expect(() => burst.with({ capacity: 0 })).toThrow('capacity must be a whole number from 1 to 2^52, got 0')
    expect(() => leakyBucket({ ...minute, limit: 3 }).with({ capacity: 0 })).toThrow(
      'capacity must be a whole number from 1 to 2^52, got 0',
    )
    expect(() => fixedWindow({ ...minute, limit: 3 }).with({ capacity: 0 })).toThrow(
      'capacity must be a whole number from 1 to 2^52, got 0',
    )
  })
})

describe('two lists of policies of the same shapes', () => {
  const list = (...numbers: [limit: number, capacity: number][]): readonly Policy[] =>
    numbers.map(([limit, capacity]) => tokenBucket({ ...minute, limit, capacity }))

  it('have equal numbers if every limit and every capacity is equal', () => {
    const some = list([1, 2], [3, 4])
    expect(haveEqualNumbers(some, some)).toBe(true)
    expect(haveEqualNumbers(some, list([1, 2], [3, 4]))).toBe(true)
  })

  it.each([
    ['the first limit', list([9, 2], [3, 4])],
    ['the last limit', list([1, 2], [9, 4])],
    ['the first capacity', list([1, 9], [3, 4])],
    ['the last capacity', list([1, 2], [3, 9])],
  ])('have other numbers if %s is another', (_, others) => {
    expect(haveEqualNumbers(list([1, 2], [3, 4]), others)).toBe(false)
  })
})
