import '@sluice/calendar' // a Temporal for runtimes that have none
import type { Model, Options, Rule } from '../rule.js'
import { boundariesAround, type Every } from './calendar-boundaries.js'

const DAY_MS = 86_400_000
/** The fewest and the most days of each period. */
const DAYS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  day: [1, 1],
  week: [7, 7],
  month: [28, 31],
  quarter: [89, 92],
  year: [365, 366],
}
/** The most by which a zone moves its clocks. */
const MOST_MOVED_MS = 3 * 3_600_000

/**
 * Calendar window: at most `limit` in each period of the calendar. Only the newest booked window is remembered, with its end: a refund
 * that arrives in another one has no effect. A release takes units out of its own window while that lasts. A charge saturates at
 * 2 x limit in its window and never lowers what is there. Calls may bring other zones and anchors: a window that has begun ends when it
 * was to end, and the next one begins there.
 */
export const model: Model<Count> = {
  refunds: 'newest until now',
  plain: { every: 'month' },
  variants: [{ every: 'day', timeZone: 'Europe/Berlin', anchor: '2025-01-31T02:30' }],
  draws: [{ every: 'week' }, { every: 'quarter' }, { every: 'year' }],
  listDraws: [
    { timeZone: 'America/New_York', anchor: '2024-03-10T02:30' },
    { timeZone: 'Australia/Lord_Howe', anchor: '2024-02-29' },
    { timeZone: 'UTC', anchor: '2025-12-31T23:59:59' },
  ],
  onlyWindow: ({ every }) => DAYS[String(every)]![1] * DAY_MS,
  multiplied: () => false,

  /**
   * The newest window that was written to, with its units. A write to a later window begins with 0 units there. A key that is full
   * again keeps the window that has ended, as the next one begins there.
   */
  recount(writes, before = NO_WINDOW) {
    let newest: Count = { ...before, units: 0n }
    const isInNewest = (at: bigint): boolean => at >= newest.start && at < newest.end
    for (const { kind, at, cost, charge, rule } of writes) {
      if (kind === 'release' || kind === 'refund') {
        const isOwn = kind === 'refund' ? isInNewest(at) : isInNewest(charge!.at) && at < newest.end
        if (isOwn) newest = { ...newest, units: newest.units > cost ? newest.units - cost : 0n }
        continue
      }
      if (at >= newest.end) newest = { ...windowBehind(newest, rule, at), units: 0n }
      const after = newest.units + cost
      const most = newest.units > 2n * rule.limit ? newest.units : 2n * rule.limit
      newest = { ...newest, units: kind === 'charge' && after > most ? most : after }
    }
    return newest
  },

  room: (newest, rule, instant) => rule.limit - (instant < newest.end ? newest.units : 0n),

  kept: (newest, _rule, instant) => (instant < newest.end ? newest.units : 0n),

  /** The most units that may be admitted from one instant to another, both included: the limit for each window that they touch. */
  bound(rule, from, to) {
    let windows = 1n
    for (let { end } = windowAt(rule, from); end <= to; { end } = windowAt(rule, end)) windows++
    return rule.limit * windows
  },
}

interface Window {
  readonly start: bigint
  readonly end: bigint
}

interface Count extends Window {
  readonly units: bigint
}

const NO_WINDOW: Count = { start: -1n, end: 0n, units: 0n }

/**
 * The window of a charge at an instant at which `before` has ended. Where that was in the midst of a window of the calendar, as it
 * was of another one, the rest of it comes next, together with the whole window behind it if less than half of the shortest period is
 * left. After that windows are those of the calendar.
 */
function windowBehind(before: Window, rule: Rule, instant: bigint): Window {
  const { start, end } = windowAt(rule, instant)
  const isFirst = before.start < 0n
  if (isFirst) return { start: start < 0n ? 0n : start, end }
  const rest = windowAt(rule, before.end)
  const [least] = DAYS[String(rule.options['every'])]!
  const isShort = 2n * (rest.end - before.end) < BigInt(least * DAY_MS - MOST_MOVED_MS) * 1000n
  const next = { start: before.end, end: isShort ? windowAt(rule, rest.end).end : rest.end }
  return instant < next.end ? next : { start, end }
}

/** The windows that were found by the calendar, the newest last. */
const WINDOWS = new Map<string, Window[]>()
const MOST_KNOWN = 500

/**
 * Returns the window (period) of a policy's calendar in which an instant lies; all in microseconds. The latest windows of a calendar
 * are remembered, as to find their boundaries takes long.
 */
function windowAt({ options }: Rule, instant: bigint): Window {
  const { every, timeZone = 'UTC', anchor = '2024-01-01' } = options as Options & Record<string, string>
  const id = `${every} ${timeZone} ${anchor}`
  const known = WINDOWS.get(id) ?? []
  WINDOWS.set(id, known)
  const found = known.findLast(({ start, end }) => instant >= start && instant < end)
  if (found) return found
  const around = boundariesAround(every as Every, timeZone, anchor, Number(instant / 1000n))
  const window = { start: BigInt(around[1]! * 1000), end: BigInt(around[2]! * 1000) }
  known.push(window)
  if (known.length > MOST_KNOWN) known.shift()
  return window
}
