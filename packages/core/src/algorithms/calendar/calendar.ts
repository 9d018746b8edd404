import { inCommon } from '../../values/contract.js'
import { PolicyError } from '../../values/errors.js'
import type { Calendar, Every } from '../contract/policy.js'

/*
 * The boundaries of a calendar: whole periods added to its anchor, never to the boundary before, so that a day which a month lacks
 * is replaced in that month alone. They come from Temporal, that of the runtime or one that `provideTemporal` was given.
 */

/** The part of `Temporal` by which boundaries are computed. */
export interface TemporalSource {
  readonly PlainDateTime: { from(text: string): LocalTime }
}

interface LocalTime {
  add(duration: { readonly months?: number; readonly days?: number }): LocalTime
  toString(): string
  toZonedDateTime(timeZone: string, options: { readonly disambiguation: 'earlier' }): ZonedTime
}

interface ZonedTime {
  readonly epochMilliseconds: number
  toPlainDateTime(): LocalTime
  getTimeZoneTransition(direction: 'next'): { readonly epochMilliseconds: number } | null
}

/** Has boundaries computed by `temporal` in all copies of this package where the runtime has no Temporal of its own. */
export function provideTemporal(temporal: TemporalSource): void {
  provided().temporal ??= temporal
}

/** What all copies of this package in a process share. */
const provided = (): { temporal?: TemporalSource } => inCommon('temporal', () => ({}))

const DAY_MS = 86_400_000
/** Of each period: its unit, its length in it, the least and the most days, and the default anchor. 1970-01-05 is a Monday. */
const PERIODS = {
  day: { days: 1, least: 1, most: 1, anchor: '1970-01-01' },
  week: { days: 7, least: 7, most: 7, anchor: '1970-01-05' },
  month: { months: 1, least: 28, most: 31, anchor: '1970-01-01' },
  quarter: { months: 3, least: 89, most: 92, anchor: '1970-01-01' },
  year: { months: 12, least: 365, most: 366, anchor: '1970-01-01' },
} as const satisfies Readonly<Record<Every, object>>

/** The periods, by the name of the option `every`. */
export const EVERY = Object.keys(PERIODS) as readonly Every[]

/** The most by which a zone has moved its clocks since 1995 without skipping a day: 3 hours, Antarctica/Casey. */
const MOST_MOVED_MS = 3 * 3_600_000

/** The longest period in milliseconds. */
export function longestOf(every: Every): number {
  return PERIODS[every].most * DAY_MS + MOST_MOVED_MS
}

/** The calendars of this process by what they were made of, the oldest first. */
const CALENDARS = new Map<string, Calendar>()
/** Each takes about 500 bytes with its boundaries. */
const MOST_CALENDARS = 10_000

/**
 * Returns the calendar of these periods in a time zone. `anchor` is a local date, with a time or without, at which one begins.
 * @throws {PolicyError} INVALID_OPTION for a zone or date that does not exist, or where there is no Temporal.
 */
export function calendarOf(every: Every, timeZone: string, anchor: string = PERIODS[every].anchor): Calendar {
  const id = `${every} ${timeZone} ${anchor}`
  const known = CALENDARS.get(id)
  if (known) return known
  const made = new ZonedCalendar(every, timeZone, anchor)
  if (CALENDARS.size === MOST_CALENDARS) CALENDARS.delete(CALENDARS.keys().next().value!)
  CALENDARS.set(id, made)
  return made
}

class ZonedCalendar implements Calendar {
  readonly shortest: number
  readonly #anchor: LocalTime
  /** The instant of the anchor, and the mean length of a period, in microseconds. */
  readonly #origin: number
  readonly #mean: number
  #latest: readonly number[] = []

  constructor(
    readonly every: Every,
    readonly timeZone: string,
    readonly anchor: string,
  ) {
    const { least, most } = PERIODS[every]
    this.shortest = (least * DAY_MS - MOST_MOVED_MS) * 1000
    this.#mean = ((least + most) / 2) * DAY_MS * 1000
    const source = (globalThis as { Temporal?: TemporalSource }).Temporal ?? provided().temporal
    if (!source) {
      const why =
        "calendarWindow needs Temporal, which this runtime lacks: import '@sluice/calendar' brings it"
      throw new PolicyError('INVALID_OPTION', why)
    }
    try {
      this.#anchor = source.PlainDateTime.from(anchor)
      this.#origin = this.#boundary(0)
    } catch (cause) {
      const what = `calendarWindow needs an anchor and a time zone that exist, got '${anchor}' in '${timeZone}'`
      throw new PolicyError('INVALID_OPTION', what, { cause })
    }
  }

  around(instant: number): readonly number[] {
    const known = this.#latest
    if (instant >= known[1]! && instant < known[2]!) return known
    let i = Math.floor((instant - this.#origin) / this.#mean)
    while (this.#boundary(i) > instant) i--
    while (this.#boundary(i + 1) <= instant) i++
    const opened = this.#boundary(i)
    const [before] = this.#next(i, -1, opened)
    const [closes, next] = this.#next(i, 1, opened)
    const [after] = this.#next(next, 1, closes)
    return (this.#latest = [before, opened, closes, after].map((boundary) => Math.max(0, boundary)))
  }

  /** The nearest boundary before or behind number `i` that differs from `from`, and its number: a zone may skip a whole day. */
  #next(i: number, step: 1 | -1, from: number): readonly [instant: number, i: number] {
    const instant = this.#boundary(i + step)
    return instant === from ? this.#next(i + step, step, from) : [instant, i + step]
  }

  /**
   * The instant, in microseconds, of the anchor and `i` whole periods. A local time that comes twice is the first; one that does not exist is
   * the instant at which the clocks were moved, where Temporal would move the time by as much.
   */
  #boundary(i: number): number {
    const { days = 0, months = 0 }: { readonly days?: number; readonly months?: number } = PERIODS[this.every]
    const local = this.#anchor.add({ days: i * days, months: i * months })
    const zoned = local.toZonedDateTime(this.timeZone, { disambiguation: 'earlier' })
    const exists = zoned.toPlainDateTime().toString() === local.toString()
    const { epochMilliseconds } = (exists ? undefined : zoned.getTimeZoneTransition('next')) ?? zoned
    return epochMilliseconds * 1000
  }
}
