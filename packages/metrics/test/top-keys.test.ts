import { consumeAll, createLimiter, fixedWindow, type Limiter, memoryStore } from '@sluice/core'
import fc from 'fast-check'
import * as promClient from 'prom-client'
import { Generations } from '../src/top-keys/key-counts.js'
import { Sampling, scaled, SAMPLED } from '../src/top-keys/sampling.js'
import { mergeSummaries } from '../src/top-keys/summary.js'
import { hashKey, observe, topKeys } from '../src/index.js'
import { expectLaws, sizes, streams, summarize, truths } from './summaries.js'

describe('space-saving', () => {
  it('lists each key with more than N / k of the stream, and bounds the truth', () => {
    fc.assert(
      fc.property(streams, sizes, (stream, size) => expectLaws(summarize(stream, size), stream, size)),
    )
  })

  it('counts exactly while the keys fit', () => {
    fc.assert(
      fc.property(streams, (stream) => {
        const { keys } = summarize(stream, 41)
        expect(new Map(keys.map(({ key, count }) => [key, count]))).toEqual(truths(stream))
        expect(keys.every(({ error }) => error === 0)).toBe(true)
      }),
    )
  })

  it('keeps both laws when summaries are merged, and merged again', () => {
    fc.assert(
      fc.property(fc.array(streams, { minLength: 2, maxLength: 5 }), sizes, (parts, size) => {
        const summaries = parts.map((part) => summarize(part, size))
        expectLaws(mergeSummaries(summaries, size), parts.flat(), size)
        const [first, ...rest] = summaries
        expectLaws(mergeSummaries([first!, mergeSummaries(rest, size)], size), parts.flat(), size)
      }),
    )
  })
})

describe('a sample', () => {
  it('picks one call in 16, and its bounds hold the truth', () => {
    const sampling = new Sampling(xorshift(7))
    for (const truth of [10, 100, 1000, 10_000, 100_000]) {
      let picked = 0
      for (let i = 0; i < truth; i++) if (sampling.picksThis()) picked++
      const { count, error } = scaled({ key: 'k', count: picked, error: 0 })
      expect(count).toBeGreaterThanOrEqual(truth)
      expect(count - error).toBeLessThanOrEqual(truth)
      expect(Math.abs(picked - truth / SAMPLED)).toBeLessThanOrEqual(4 * Math.sqrt(truth / SAMPLED) + 1)
    }
  })

  it('widens the error of a count that is uncertain itself', () => {
    const { count, error } = scaled({ key: 'k', count: 100, error: 90 })
    expect(count - error).toBe(
      scaled({ key: 'k', count: 10, error: 0 }).count - scaled({ key: 'k', count: 10, error: 0 }).error,
    )
  })
})

describe('generations', () => {
  it('forget what is older than the window, in two steps', () => {
    const generations = new Generations(10)
    const keys = () => generations.summary().keys.map(({ key, count }) => `${key}=${count}`)
    generations.add('old')
    generations.add('new')
    generations.beginGeneration()
    generations.add('new')
    expect(keys().toSorted()).toEqual(['new=2', 'old=1'])
    generations.beginGeneration()
    expect(keys()).toEqual(['new=1'])
    generations.beginGeneration()
    expect(keys()).toEqual([])
  })
})

describe('topKeys', () => {
  const open = () =>
    createLimiter({
      policies: [fixedWindow({ limit: 2, window: '1h' })],
      store: memoryStore({ clock: () => 0 }),
      name: 'top',
    })

  it('lists the keys with the most denials, the most first', async () => {
    const limiter = open()
    const top = topKeys(limiter)
    expect(topKeys(limiter)).toBe(top)
    for (let i = 0; i < 5; i++) await limiter.consume('often')
    for (let i = 0; i < 3; i++) await limiter.consume('once')
    await limiter.peek('once')
    expect(top.denied()).toEqual([
      { key: 'often', count: 3, error: 0 },
      { key: 'once', count: 1, error: 0 },
    ])
    for (let i = 0; i < 1000; i++) await limiter.consume('often')
    const [first] = top.all()
    expect(first!.key).toBe('often')
    top.stop()
    await limiter.consume('often')
    expect(top.denied()[0]).toMatchObject({ key: 'often', count: 1003 })
    await limiter.close()
    expect(() => topKeys(limiter)).toThrow(expect.objectContaining({ code: 'CLOSED' }))
  })

  it('lists of several keys those that deny, and none that was not charged for their sake', async () => {
    const [wide, narrow] = [open(), open()]
    const [topWide, topNarrow] = [topKeys(wide), topKeys(narrow)]
    for (let i = 0; i < 40; i++) {
      await consumeAll([
        { limiter: wide, key: 'tenant' },
        { limiter: narrow, key: 'user', cost: 3 },
      ])
    }
    expect(topNarrow.denied()).toEqual([{ key: 'user', count: 40, error: 0 }])
    expect([topWide.denied(), topWide.all()]).toEqual([[], []])
    await Promise.all([wide.close(), narrow.close()])
  })

  describe('of a limiter that is observed', () => {
    const metrics = () => ({ prometheus: promClient, registry: new promClient.Registry() })
    const deny = async (limiter: Limiter, times: number) => {
      for (let i = 0; i < times; i++) await limiter.consume('often', { cost: 3 })
    }

    it('has counted from the start', async () => {
      const limiter = open()
      const stop = observe(limiter, metrics())
      await deny(limiter, 5)
      const top = topKeys(limiter)
      expect(top.denied()).toEqual([{ key: 'often', count: 5, error: 0 }])
      expect(topKeys(limiter, { size: 3 })).toBe(top) // those of the first call stay
      stop() // what was asked for goes on
      await deny(limiter, 1)
      expect(top.denied()).toMatchObject([{ count: 6 }])
      expect(topKeys(limiter)).toBe(top)
      await limiter.close()
    })

    it('hands its counts over to lists with hashes, and counts each call once', async () => {
      const limiter = open()
      observe(limiter, metrics())
      await deny(limiter, 5)
      expect(() => topKeys(limiter, { hashKeys: 'yes' as never })).toThrow('hashKeys')
      const top = topKeys(limiter, { hashKeys: true })
      await deny(limiter, 2)
      expect(top.denied()).toEqual([{ key: hashKey('often'), count: 7, error: 0 }])
      await limiter.close()
    })

    it('counts until the last of its observations ends', async () => {
      const limiter = open()
      const [first, second] = [observe(limiter, metrics()), observe(limiter, metrics())]
      first()
      await deny(limiter, 5)
      expect(topKeys(limiter).denied()).toMatchObject([{ count: 5 }])
      topKeys(limiter).stop()
      second()
      const ends = [observe(limiter, metrics()), observe(limiter, metrics())]
      for (const end of ends) end()
      await deny(limiter, 1)
      expect(topKeys(limiter).denied()).toEqual([])
      await limiter.close()
    })

    it.each([{ size: 10 }, { window: '1m' }] as const)('begins anew with %j', async (options) => {
      const limiter = open()
      observe(limiter, metrics())
      await deny(limiter, 5)
      const top = topKeys(limiter, options)
      await deny(limiter, 2)
      expect(top.denied()).toMatchObject([{ count: 2 }])
      await limiter.close()
    })

    it('counts no more once it is not observed, and leaves lists alone that were there before', async () => {
      const limiter = open()
      observe(limiter, metrics())()
      await deny(limiter, 5)
      const top = topKeys(limiter)
      expect(top.denied()).toEqual([])
      await deny(limiter, 1)
      observe(limiter, metrics())()
      await deny(limiter, 1)
      expect(topKeys(limiter)).toBe(top)
      expect(top.denied()).toMatchObject([{ count: 2 }])
      await limiter.close()
    })
  })

  it('forgets what is older than the window', async () => {
    jest.useFakeTimers()
    const limiter = open()
    const top = topKeys(limiter, { window: '10s' })
    await limiter.consume('k', { cost: 3 })
    jest.advanceTimersByTime(9999)
    expect(top.denied()).toHaveLength(1)
    jest.advanceTimersByTime(1)
    expect(top.denied()).toEqual([])
    jest.useRealTimers()
  })

  it.each<[string, () => unknown]>([
    ['topKeys takes a limiter', () => topKeys({} as never)],
    ['size must be a whole number', () => topKeys(open(), { size: 0 })],
    ['window', () => topKeys(open(), { window: 'soon' as never })],
  ])('refuses what it cannot use: %s', (message, act) => {
    expect(act).toThrow(
      expect.objectContaining({ name: 'PolicyError', message: expect.stringContaining(message) }),
    )
  })
})

/** Random numbers that repeat from run to run. */
function xorshift(seed: number): () => number {
  let x = seed
  return () => {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    return (x >>> 0) / 2 ** 32
  }
}
