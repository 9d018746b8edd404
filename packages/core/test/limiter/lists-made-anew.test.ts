import '@sluice/calendar'
import { expectWarnings } from '@sluice/harness/warnings'
import { algorithms } from '../../src/stores/authoring.js'
import { calendarWindow, createLimiter, fixedWindow, gcra, memoryStore, slidingLog } from '../../src/index.js'

/** A store in memory, and how often a limiter has opened a list of policies in it. */
function counted() {
  const opened = { lists: 0 }
  const store = memoryStore()
  const { keyspace } = store
  store.keyspace = (...given) => {
    opened.lists++
    return keyspace.apply(store, given)
  }
  return { store, opened }
}

describe('a list of policies that is made anew for each call', () => {
  const month = (customer: number) =>
    calendarWindow({
      limit: 5,
      every: 'month',
      timeZone: 'Asia/Tokyo',
      anchor: `2025-01-0${1 + (customer % 3)}`,
    })

  it('is opened once for each of its contents', async () => {
    expectWarnings(['STORE_FORGETS'])
    const { store, opened } = counted()
    const limiter = createLimiter({ name: 'anew', policies: [month(0)], store })
    for (let i = 0; i < 12; i++) await limiter.consume('a', { policies: [month(i)] })
    expect(opened.lists).toBe(3)
    for (let i = 0; i < 12; i++)
      await limiter.consume('a', { policies: [month(i), gcra({ limit: 9, window: '1s' })] })
    expect(opened.lists).toBe(6)
    await limiter.consume('a', { policies: [gcra({ limit: 9, window: '1s' })] })
    await limiter.consume('a', { policies: [gcra({ limit: 9, window: '1s' }), month(0)] })
    expect(opened.lists).toBe(8)
  })

  it.each(Object.keys(algorithms) as (keyof typeof algorithms)[])(
    'gets the policy of equal options from %s',
    (name) => {
      const make = algorithms[name] as (options: object) => unknown
      const options = { limit: 7, ...(name === 'calendarWindow' ? { every: 'day' } : { window: '1m' }) }
      expect(make({ ...options })).toBe(make(options))
      expect(make({ ...options, name: undefined })).toBe(make(options))
      expect(make({ ...options, name: 'other' })).not.toBe(make(options))
      expect(make({ ...options, limit: 8 })).not.toBe(make(options))
    },
  )

  it('is refused for an option that there is not, also beside known ones', () => {
    fixedWindow({ limit: 1, window: '1s' })
    expect(() => fixedWindow({ limit: 1, window: '1s', burst: 1 } as never)).toThrow(/no option 'burst'/)
    expect(() => fixedWindow({ limit: 1, window: '1s', name: undefined, burst: 1 } as never)).toThrow(
      /'burst'/,
    )
    expect(() => fixedWindow(undefined as never)).toThrow(/takes an object of options/)
  })

  it('is made once more after ten thousand others', () => {
    const first = slidingLog({ limit: 1, window: '1d' })
    for (let limit = 2; limit <= 10_001; limit++) slidingLog({ limit, window: '1d' })
    const again = slidingLog({ limit: 1, window: '1d' })
    expect(again).not.toBe(first)
    expect(again).toEqual(first)
  })
})
