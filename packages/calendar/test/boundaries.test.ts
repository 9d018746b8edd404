import * as fc from 'fast-check'
import { boundariesAround } from '@sluice/testing/internal'
import { type CalendarWindowOptions, calendarWindow } from '../src/index.js'

type Every = CalendarWindowOptions['every']

const ZONES = [...Intl.supportedValuesOf('timeZone'), 'UTC']
const EVERY: readonly Every[] = ['day', 'week', 'month', 'quarter', 'year']
const ANCHORS = [
  '1970-01-01',
  '2024-01-31',
  '2024-02-29',
  '2023-08-30T02:30',
  '2011-12-30T12:00',
  '2000-12-29T23:59:59',
  '0050-01-31T08:00',
]

/** The boundaries around an instant, in milliseconds. */
function found(every: Every, timeZone: string, anchor: string, instant: number): readonly number[] {
  const { calendar } = calendarWindow({ limit: 1, every, timeZone, anchor })
  return calendar!.around(instant * 1000).map((boundary) => boundary / 1000)
}

/** The boundaries around an instant, as texts. */
function around(every: Every, timeZone: string, anchor: string, instant: string): string[] {
  return found(every, timeZone, anchor, Date.parse(instant)).map((ms) =>
    new Date(ms).toISOString().replace('.000', ''),
  )
}

describe('boundaries of a calendar', () => {
  it('are whole periods added to the anchor, a day that a month lacks becoming its last', () => {
    expect(around('month', 'UTC', '2025-01-31', '2025-03-05T00:00Z')).toEqual([
      '2025-01-31T00:00:00Z',
      '2025-02-28T00:00:00Z',
      '2025-03-31T00:00:00Z',
      '2025-04-30T00:00:00Z',
    ])
    expect(around('year', 'UTC', '2024-02-29', '2027-06-01T00:00Z')).toEqual([
      '2026-02-28T00:00:00Z',
      '2027-02-28T00:00:00Z',
      '2028-02-29T00:00:00Z',
      '2029-02-28T00:00:00Z',
    ])
    expect(around('quarter', 'UTC', '2024-11-30', '2025-03-01T00:00Z')).toEqual([
      '2024-11-30T00:00:00Z',
      '2025-02-28T00:00:00Z',
      '2025-05-30T00:00:00Z',
      '2025-08-30T00:00:00Z',
    ])
  })

  it('are an anchor that lies in the future, too', () => {
    expect(around('month', 'UTC', '2999-01-31', '2025-03-05T00:00Z')).toEqual(
      around('month', 'UTC', '2025-01-31', '2025-03-05T00:00Z'),
    )
  })

  it('begin a window with the instant that they name', () => {
    expect(around('day', 'UTC', '1970-01-01', '2025-03-05T00:00Z')[1]).toBe('2025-03-05T00:00:00Z')
    expect(around('day', 'UTC', '1970-01-01', '2025-03-04T23:59:59.999Z')[1]).toBe('2025-03-04T00:00:00Z')
  })

  it('are the instant of the transition where a local time does not exist', () => {
    // In Berlin 02:00 to 03:00 is left out at 01:00 UTC; in Cairo midnight is, at 22:00 UTC; Lord Howe moves by half an hour.
    expect(around('day', 'Europe/Berlin', '2025-01-01T02:30', '2025-03-30T12:00Z')[1]).toBe(
      '2025-03-30T01:00:00Z',
    )
    expect(around('day', 'Europe/Berlin', '2025-01-01T02:00', '2025-03-30T12:00Z')[1]).toBe(
      '2025-03-30T01:00:00Z',
    )
    expect(around('day', 'Africa/Cairo', '2025-01-01', '2025-04-25T12:00Z')[1]).toBe('2025-04-24T22:00:00Z')
    expect(around('day', 'Australia/Lord_Howe', '2025-01-01T02:15', '2025-10-04T18:00Z')[1]).toBe(
      '2025-10-04T15:30:00Z',
    )
  })

  it('are the first of two equal local times', () => {
    expect(around('day', 'Europe/Berlin', '2025-01-01T02:30', '2025-10-26T12:00Z')[1]).toBe(
      '2025-10-26T00:30:00Z',
    )
    expect(around('day', 'America/Havana', '2025-01-01', '2025-11-02T12:00Z')[1]).toBe('2025-11-02T04:00:00Z')
  })

  it('are one where a zone has skipped a day', () => {
    // Apia went from 29 to 31 December 2011.
    expect(around('day', 'Pacific/Apia', '1970-01-01', '2011-12-30T12:00Z')).toEqual([
      '2011-12-29T10:00:00Z',
      '2011-12-30T10:00:00Z',
      '2011-12-31T10:00:00Z',
      '2012-01-01T10:00:00Z',
    ])
  })

  it('are those of half-hour zones, and of weeks that begin on Monday', () => {
    expect(around('week', 'Asia/Kolkata', '1970-01-05', '2025-03-05T00:00Z')[1]).toBe('2025-03-02T18:30:00Z')
    expect(around('month', 'Asia/Kathmandu', '1970-01-01', '2025-03-05T00:00Z')[1]).toBe(
      '2025-02-28T18:15:00Z',
    )
  })

  it('are the same by another algorithm over the offsets of the same data, in every zone of the runtime', () => {
    const instants = fc.oneof(
      fc.integer({ min: 0, max: Date.UTC(2100) }),
      fc.integer({ min: Date.UTC(2000), max: Date.UTC(2040) }),
    )
    const drawn = fc.array(fc.tuple(fc.constantFrom(...EVERY), fc.constantFrom(...ANCHORS), instants), {
      minLength: 4,
      maxLength: 4,
      size: 'max',
    })
    let places = ZONES.entries()
    const differences: unknown[] = []
    fc.assert(
      fc.property(drawn, (draws) => {
        const next = places.next()
        if (next.done) places = ZONES.entries()
        const zone = next.value?.[1] ?? 'UTC'
        for (const [every, anchor, instant] of draws) {
          const [ours, theirs] = [found, boundariesAround].map((by) => by(every, zone, anchor, instant))
          if (String(ours) !== String(theirs))
            differences.push({ every, zone, anchor, instant, ours, theirs })
        }
      }),
      { numRuns: ZONES.length + 1 },
    )
    expect(differences.slice(0, 5)).toEqual([])
  })
})
