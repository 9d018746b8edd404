import { sharedInProcess } from '../../values/contract.js'
import { PolicyError } from '../../values/errors.js'

/*
 * The boundaries of a calendar: whole periods added to its anchor, never to the boundary before, so that a day which a month lacks
 * is replaced in that month alone. They come from Temporal, that of the runtime or one that `provideTemporal` was given.
 */

/** The part of `Temporal` by which boundaries are computed. */
export interface TemporalSource {
  readonly PlainDateTime: { from(text: string): LocalTime }
}

interface LocalTime {
  add(duration: object): LocalTime
  toString(): string
  toZonedDateTime(timeZone: string, options: { readonly disambiguation: 'earlier' }): ZonedTime
}

interface ZonedTime {
  readonly epochMilliseconds: number
  toPlainDateTime(): LocalTime
  getTimeZoneTransition(direction: 'next'): { readonly epochMilliseconds: number } | null
}

/** Makes all copies of this package compute boundaries by `temporal`, where the runtime itself has no Temporal. */
export function provideTemporal(temporal: TemporalSource): void {
  provided().temporal ??= temporal
}

/** The state that all copies of this package in a process share. */
const provided = (): { temporal?: TemporalSource } => sharedInProcess('temporal', () => ({}))

/** The periods of a calendar. */
export type Every = 'day' | 'week' | 'month' | 'quarter' | 'year'

/** For each period: what Temporal adds, and the least, the mean and the most days. */
const PERIODS = {
  day: { days: 1, least: 1, mean: 1, most: 1 },
  week: { days: 7, least: 7, mean: 7, most: 7 },
  month: { months: 1, least: 28, mean: 365.2425 / 12, most: 31 },
  quarter: { months: 3, least: 89, mean: 365.2425 / 4, most: 92 },
  year: { months: 12, least: 365, mean: 365.2425, most: 366 },
} satisfies Readonly<Record<Every, object>>

/** The periods, by the name of the option `every`. */
export const EVERY = Object.keys(PERIODS) as readonly Every[]

const DAY_MS = 86_400_000
/** The most by which a zone has moved its clocks since 1995 without skipping a day: 3 hours, Antarctica/Casey. */
export const MOST_MOVED_MS = 10_800_000

/** The boundaries of a calendar's periods. */
export class Calendar {
  /** The shortest period in microseconds, in a zone that skips no day. */
  readonly shortest: number
  /** The longest period in milliseconds, if no clocks are moved. */
  readonly longestMs: number
  readonly #anchor: LocalTime
  /** The instant of the anchor, and those around the latest instant that was asked for, in microseconds. */
  readonly #origin: number
  #latest: readonly number[] = []

  /**
   * Makes the calendar of these periods in a time zone. `anchor` is a local date, with a time or without, at which one begins, and
   * `#origin` that instant. `shortest` and `longestMs` bound how long a period lasts, when clocks are moved in it: the one in
   * microseconds, the other in milliseconds. Dates are computed by Temporal, that of the runtime or of '@sluice/calendar'.
   * @throws {PolicyError} INVALID_OPTION for a zone or date that does not exist, or where there is no Temporal.
   */
  constructor(
    readonly every: Every,
    readonly timeZone: string,
    readonly anchor: string,
  ) {
    const { least, most } = PERIODS[every]
    this.shortest = (least * DAY_MS - MOST_MOVED_MS) * 1000
    this.longestMs = most * DAY_MS
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

  /**
   * Returns the two boundaries at or before an instant and the two after it, in microseconds. Equal boundaries count as one. Which
   * boundary is `near` is estimated by the mean period, so the eight around it are computed. The latest result is kept.
   */
  around(instant: number): readonly number[] {
    const latest = this.#latest
    if (instant >= latest[1]! && instant < latest[2]!) return latest
    const near = Math.floor((instant - this.#origin) / (PERIODS[this.every].mean * DAY_MS * 1000))
    const all = [...new Set([-3, -2, -1, 0, 1, 2, 3, 4].map((i) => this.#boundary(near + i)))]
    const next = all.findIndex((boundary) => boundary > instant)
    return (this.#latest = all.slice(next - 2, next + 2))
  }

  /**
   * Returns the instant, in microseconds, `i` whole periods after the anchor. Of a local time that the clocks show twice it is the
   * first. Of a local time that they skip it is the instant of the skip; Temporal would move the time by the length of the gap.
   */
  #boundary(i: number): number {
    const { days = 0, months = 0 }: { readonly days?: number; readonly months?: number } = PERIODS[this.every]
    const local = this.#anchor.add({ days: i * days, months: i * months })
    const zoned = local.toZonedDateTime(this.timeZone, { disambiguation: 'earlier' })
    const exists = zoned.toPlainDateTime().toString() === local.toString()
    return 1000 * ((exists ? undefined : zoned.getTimeZoneTransition('next')) ?? zoned).epochMilliseconds
  }
}
