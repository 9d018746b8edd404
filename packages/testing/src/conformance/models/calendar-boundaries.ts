/*
 * Boundaries of calendars, counted from the offsets of the runtime's zone data alone and not by Temporal: a boundary is the first
 * instant at which the clocks on the wall show its local time or a later one. All instants are milliseconds.
 */

export type Every = 'day' | 'week' | 'month' | 'quarter' | 'year'

const DAY = 86_400_000
const FORMATS = new Map<string, Intl.DateTimeFormat>()

/**
 * Returns how many milliseconds the clocks of a time zone are ahead of UTC at an instant, in milliseconds too. `Intl` says what date and
 * time the clocks show; that as milliseconds of UTC (`wall`), less the instant in whole seconds, is the answer.
 */
export function offsetOf(zone: string, instant: number): number {
  if (zone === 'UTC') return 0
  let format = FORMATS.get(zone)
  if (!format) {
    const fields = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric' } as const
    const all = { ...fields, minute: 'numeric', second: 'numeric' } as const
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'iso8601',
      hourCycle: 'h23',
      ...all,
    })
    FORMATS.set(zone, format)
  }
  const at = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
  const seconds = (at['hour']! * 60 + at['minute']!) * 60 + at['second']!
  const wall = midnightOf(at['year']!, at['month']! - 1, at['day']!) + 1000 * seconds
  return wall - 1000 * Math.floor(instant / 1000)
}

/**
 * The first instant at which the clocks of a zone show `local` or later: the milliseconds of UTC with the same date and time. The
 * clocks may be moved once in the three days around it: the instant of that is found by halving (`movedAt`). A time that is skipped
 * then is shown late, at that instant.
 */
function firstAt(zone: string, local: number): number {
  let [low, high] = [local - 1.5 * DAY, local + 1.5 * DAY]
  const [before, after] = [offsetOf(zone, low), offsetOf(zone, high)]
  if (before === after) return local - before
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetOf(zone, middle) === before) low = middle
    else high = middle
  }
  const movedAt = high
  const isShownBefore = local - before < movedAt
  return isShownBefore ? local - before : Math.max(movedAt, local - after)
}

/** Midnight of a day in UTC, of any year: `Date.UTC` takes the years 0 to 99 for 1900 to 1999. */
function midnightOf(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month, day)
}

const MONTHS: Readonly<Record<string, number>> = { month: 1, quarter: 3, year: 12 }
const MEAN_DAYS = { day: 1, week: 7, month: 30.436_875, quarter: 91.310_625, year: 365.2425 }

/**
 * Returns the local time `i` whole periods (such as months) after the anchor, a local date, as the milliseconds of UTC that have the
 * same date and time. A day that the month does not have becomes the month's last.
 */
function localOf(every: Every, anchor: string, i: number): number {
  const at = new Date(`${anchor}${anchor.includes('T') ? '' : 'T00:00'}Z`)
  const months = MONTHS[every]
  if (months === undefined) return at.getTime() + i * MEAN_DAYS[every] * DAY
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth() + i * months]
  const days = new Date(midnightOf(year, month + 1, 0)).getUTCDate()
  const timeOfDay = at.getTime() - midnightOf(year, at.getUTCMonth(), at.getUTCDate())
  return midnightOf(year, month, Math.min(at.getUTCDate(), days)) + timeOfDay
}

/**
 * Returns all boundaries between periods of a calendar from the instant `from` to `to`, in milliseconds, in order. The search begins three
 * periods before the one that the mean length of a period suggests. Boundaries that a skip of the clocks makes equal count as one.
 */
export function boundariesIn(
  every: Every,
  zone: string,
  anchor: string,
  from: number,
  to: number,
): readonly number[] {
  const found = new Set<number>()
  let i = Math.floor((from - localOf(every, anchor, 0)) / (MEAN_DAYS[every] * DAY)) - 3
  for (let at = -Infinity; at <= to; i++) {
    at = firstAt(zone, localOf(every, anchor, i))
    if (at >= from && at <= to) found.add(at)
  }
  return [...found]
}

/**
 * Returns the two boundaries between periods of a calendar at or before an instant and the two after it, in milliseconds, out of the 13
 * around the one that the mean length of a period suggests (`near`). Equal ones count as one.
 */
export function boundariesAround(
  every: Every,
  zone: string,
  anchor: string,
  instant: number,
): readonly number[] {
  const near = Math.floor((instant - localOf(every, anchor, 0)) / (MEAN_DAYS[every] * DAY))
  const numbers = Array.from({ length: 13 }, (_, k) => near + k - 6)
  const all = [...new Set(numbers.map((i) => firstAt(zone, localOf(every, anchor, i))))]
  const after = all.findIndex((boundary) => boundary > instant)
  return all.slice(after - 2, after + 2)
}
