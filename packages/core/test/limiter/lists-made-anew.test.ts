import '@sluice/calendar'
import { expectWarnings } from '@sluice/harness/warnings'
import { calendarWindow, createLimiter, gcra, memoryStore } from '../../src/index.js'

const SECOND = gcra({ limit: 9, window: '1s' })

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
    for (let i = 0; i < 12; i++) await limiter.consume('a', { policies: [month(i), SECOND] })
    expect(opened.lists).toBe(6)
    await limiter.consume('a', { policies: [SECOND] })
    await limiter.consume('a', { policies: [SECOND, month(0)] })
    expect(opened.lists).toBe(8)
  })

  it('gets the policy of equal options', () => {
    const options = { limit: 7, every: 'day' } as const
    const policy = calendarWindow(options)
    expect(calendarWindow({ ...options })).toBe(policy)
    expect(calendarWindow({ ...options, timeZone: undefined } as never)).toBe(policy)
    expect(calendarWindow({ ...options, timeZone: 'Asia/Tokyo' })).not.toBe(policy)
    expect(calendarWindow({ ...options, limit: 8 })).not.toBe(policy)
    expect(calendarWindow({ ...options, every: 'week' })).not.toBe(policy)
    expect(calendarWindow({ ...options, name: 'daily' })).not.toBe(policy)
  })

  it('is refused for an option that there is not, also beside known ones', () => {
    calendarWindow({ limit: 1, every: 'day' })
    expect(() => calendarWindow({ limit: 1, every: 'day', burst: 1 } as never)).toThrow(/no option 'burst'/)
    expect(() => calendarWindow({ limit: 1, every: 'day', name: undefined, burst: 1 } as never)).toThrow(
      /'burst'/,
    )
    calendarWindow({ limit: 1, every: 'day', name: undefined } as never)
    expect(() => calendarWindow({ limit: 1, every: 'day', burst: 1 } as never)).toThrow(/'burst'/)
    expect(() => calendarWindow(undefined as never)).toThrow(/takes an object of options/)
  })

  it('is made once more after ten thousand others', () => {
    const first = calendarWindow({ limit: 1, every: 'year' })
    for (let limit = 2; limit <= 10_001; limit++) calendarWindow({ limit, every: 'year' })
    const again = calendarWindow({ limit: 1, every: 'year' })
    expect(again).not.toBe(first)
    expect(again).toEqual(first)
  })
})
