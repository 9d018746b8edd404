import '@sluice/calendar' // a Temporal for runtimes that have none
import type { Model, Options, Rule } from '../rule.js'
import { boundariesAround, type Every } from './calendar-boundaries.js'

const DAY_MS = 86_400_000
/** The longest period. */
const WINDOWS_MS: Readonly<Record<string, number>> = { day: DAY_MS, month: 31 * DAY_MS }

/**
 * Calendar window: at most `limit` in each period of the calendar. Only the newest booked window is remembered, with its end: a refund
 * that arrives in another one has no effect. A release takes units out of its own window while that lasts. A charge saturates at
 * 2 x limit in its window and never lowers what is there.
 */
export const model: Model<Count> = {
  refunds: 'newest until now',
  plain: { every: 'month' },
  variants: [{ every: 'day', timeZone: 'Europe/Berlin', anchor: '2025-01-31T02:30' }],
  onlyWindow: ({ every }) => WINDOWS_MS[String(every)]!,
  multiplied: () => false,

  /** The newest window that was written to, with its units. A write to a later window begins with 0 units there. */
  recount(writes) {
    let newest: Count = { start: -1n, end: 0n, units: 0n }
    const holds = (at: bigint): boolean => at >= newest.start && at < newest.end
    for (const { kind, at, cost, charge, rule } of writes) {
      if (kind === 'release' || kind === 'refund') {
        const isOwn = kind === 'refund' ? holds(at) : holds(charge!.at) && at < newest.end
        if (isOwn) newest = { ...newest, units: newest.units > cost ? newest.units - cost : 0n }
        continue
      }
      if (at >= newest.end) newest = { ...windowAt(rule, at), units: 0n }
      const after = newest.units + cost
      const most = newest.units > 2n * rule.limit ? newest.units : 2n * rule.limit
      newest = { ...newest, units: kind === 'charge' && after > most ? most : after }
    }
    return newest
  },

  room: (newest, rule, instant) => rule.limit - (instant < newest.end ? newest.units : 0n),

  kept: (newest, _rule, instant) => (instant < newest.end ? newest.units : 0n),

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

/** The windows that were found by the calendar, the newest last. */
const WINDOWS = new Map<string, Window[]>()

/** The window of the calendar in which an instant lies; all in microseconds. */
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
  if (known.length > 500) known.shift()
  return window
}
