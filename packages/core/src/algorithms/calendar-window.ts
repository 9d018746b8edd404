import * as option from '../values/options.js'
import { Tree } from '../values/tree.js'
import { Calendar, EVERY, type Every, MOST_MOVED_MS } from './calendar/calendar.js'
import { type Algorithm, factory, POLICY, Policy, windowOf } from './contract/policy.js'
import type { PolicyFactory, PolicyOptions } from './contract/policy.js'
import type { State } from './contract/state.js'

/*
 * One counter per window of the calendar. Unlike a fixed window's state, this one has the end of its window, and stays in the window
 * until then: calls with the boundaries of another time zone or billing day keep what was consumed, and begin no window early.
 */

/** Start and end of the newest window that was booked, in microseconds, and the units booked in it. */
const START = 0
const ENDS = 1
const COUNT = 2

export interface CalendarWindowOptions extends Omit<PolicyOptions, 'window'> {
  /** The period of the calendar: 'day', 'week', 'month', 'quarter' or 'year'. */
  readonly every: Every
  /**
   * A time zone of the IANA database, such as 'Europe/Berlin'.
   * @default 'UTC'
   */
  readonly timeZone?: string
  /**
   * A local date at which a window begins, with a time if wanted: a billing day such as '2025-01-31', whose windows begin at the last
   * day of a month that has no such day.
   * @default midnight on the first of the period; of a week, on Monday
   */
  readonly anchor?: string
}

const { window: _, ...OTHERS } = POLICY
const CALENDAR_WINDOW = {
  ...OTHERS,
  every: option.required(option.oneOf(EVERY)),
  timeZone: option.text('the name of a time zone', /^[\w+/:-]{1,64}$/, 'UTC'),
  anchor: option.text(
    "a local date such as '2025-01-31' or '2025-01-31T08:00'",
    /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?$/,
    '2024-01-01', // a Monday
  ),
} satisfies option.DeclarationOf<CalendarWindowOptions>

/**
 * At most `limit` in each window of the calendar: a day, week, month, quarter or year in a time zone, counted from an `anchor`. A
 * window that has begun ends when it was to end, whatever zone and anchor later calls bring.
 * @throws {PolicyError} for a limit that is not whole, for a zone or date that does not exist, and where the runtime has no Temporal
 *   and none was brought by `@sluice/calendar`.
 * @example
 * import { calendarWindow } from '@sluice/calendar'
 * import { createLimiter } from '@sluice/core'
 * // 10,000 calls a month, which begins on the customer's billing day.
 * const month = calendarWindow({ limit: 10_000, every: 'month', timeZone: 'Europe/Berlin', anchor: '2025-01-31' })
 * const limiter = createLimiter({ policies: [month] })
 * const { remaining } = await limiter.consume('user:42')
 */
export const calendarWindow: PolicyFactory<CalendarWindowOptions> = /* @__PURE__ */ rememberingPolicies(
  /* @__PURE__ */ factory('calendarWindow', CALENDAR_WINDOW, ({ every, timeZone, anchor, limit, name }) => {
    const calendar = new Calendar(every, timeZone, anchor)
    return new Policy(algorithm, { limit, name, window: calendar.longestMs }, { calendar })
  }),
)

/**
 * Returns a factory that makes policies by `make`, and keeps them by their options, so that one that is asked for with each call costs
 * little. Policies of the same zone, anchor and limit are in one list (`alike`), which is searched for the other two options. A call
 * that also has options that do not exist is left to `make`, which refuses them. After MOST_KNOWN policies all are forgotten.
 */
function rememberingPolicies(
  make: PolicyFactory<CalendarWindowOptions>,
): PolicyFactory<CalendarWindowOptions> {
  const isDeclared = (name: string): boolean => Object.hasOwn(CALENDAR_WINDOW, name)
  let [policiesByOptions, count] = [new Tree<unknown, readonly Made[]>(false), 0]
  const calendarWindow = (given: CalendarWindowOptions): Policy => {
    // Only three of the options are levels of the tree: a loop, or a level for each, takes as long as the limiter's decision.
    const { timeZone, anchor, limit, every, name }: Partial<CalendarWindowOptions> = given ?? {}
    const alike = policiesByOptions.next.get(timeZone)?.next.get(anchor)?.next.get(limit)?.value ?? []
    for (let i = 0; i < alike.length; i++) {
      const made = alike[i]!
      if (made.every !== every || made.name !== name) continue
      if (hasNames(given, made.optionCount) || Object.keys(given).every(isDeclared)) return made.policy
    }
    const policy = make(given)
    if (++count % MOST_KNOWN === 0) policiesByOptions = new Tree(false)
    const values = [timeZone, anchor, limit, every, name].filter((each) => each !== undefined)
    const made = { every, name, policy, optionCount: values.length }
    policiesByOptions.keep([timeZone, anchor, limit], [made, ...alike.slice(0, MOST_ALIKE - 1)])
    return policy
  }
  return Object.assign(calendarWindow, { options: make.options })
}

interface Made {
  readonly every: unknown
  readonly name: unknown
  readonly policy: Policy
  /** The number of options that were given: a call with as many of the same values has no other. */
  readonly optionCount: number
}

/** Whether an object and its prototypes have `count` names together. Counts them without the list that Object.keys would make. */
function hasNames(given: object, count: number): boolean {
  let counted = 0
  for (const _ in given) counted++
  return counted === count
}

/** The policies that are kept of one zone, anchor and limit: of each period, and of some names. */
const MOST_ALIKE = 16

/** The policies that are kept. Each takes about two kilobytes with its boundaries. */
const MOST_KNOWN = 10_000

const algorithm: Algorithm = {
  name: 'calendar-window',
  ring: false,
  hasWindows: true,
  cells: () => 3,

  /**
   * Calendar window: returns `from` if the window in which it lies has room for `cost` units, otherwise the end of that window;
   * Infinity for a cost above the limit. Instants are in microseconds.
   */
  earliest(state, policy, from, cost) {
    if (cost > policy.limit) return Infinity
    return from >= state.get(ENDS) || state.get(COUNT) + cost <= policy.limit ? from : state.get(ENDS)
  },

  /**
   * Calendar window: counts `cost` units in the window of the instant `at`. A negative cost takes units out if that is the kept
   * window, and otherwise does nothing. Charges without a check raise the count to at most twice the limit; a count above that, from
   * a time of larger limits, stays. Returns the units that took effect.
   */
  admit(state, policy, at, cost) {
    if (cost < 0 && (at < state.get(START) || at >= state.get(ENDS))) return 0
    moveTo(state, policy, at)
    const before = state.get(COUNT)
    const most = Math.max(before, 2 * policy.limit)
    state.set(COUNT, Math.max(0, Math.min(most, before + cost)))
    return Math.abs(state.get(COUNT) - before)
  },

  /** Calendar window: fills `view` with the units that its window has left at `now`, and with its end if any are counted. */
  view(state, policy, now, view) {
    const count = now < state.get(ENDS) ? state.get(COUNT) : 0
    view.remaining = policy.limit - count
    view.resetAt = count === 0 ? now : state.get(ENDS)
  },

  /** Calendar window: counts `cost` units at `now` if they fit, and fills `view`. Returns what `earliest` returns. */
  take(state, policy, now, cost, view) {
    const at = algorithm.earliest(state, policy, now, cost)
    if (at <= now) algorithm.admit(state, policy, now, cost)
    algorithm.view(state, policy, now, view)
    return at
  },

  /** Calendar window: gives back units of a charge while the window lasts in which it was made; returns how many took effect. */
  release(state, _policy, now, charge, units) {
    const [start, ends] = [state.get(START), state.get(ENDS)]
    if (charge.at < start || charge.at >= ends || now >= ends) return 0
    const given = Math.min(units, state.get(COUNT))
    state.set(COUNT, state.get(COUNT) - given)
    return given
  },

  /** Whether calls can have left this state: its window is no longer than three periods, and ends within three of `latest`. */
  isValid(state, { window }, latest) {
    const [start, ends] = [state.get(START), state.get(ENDS)]
    return start <= ends && ends <= Math.min(start, latest) + 3 * window
  },

  bounds: {
    // A span may begin with the last microsecond of a window.
    most: ({ limit, calendar }, span) => limit * (Math.ceil((span - 1) / calendar!.shortest) + 1),
    // With what the clocks are moved in it.
    reach: ({ window }) => window + MOST_MOVED_MS * 1000,
    scale: windowOf,
  },
}

/**
 * Moves a state to the window of `instant`, with nothing counted, if its own window has ended by then. Each window begins where the
 * one before has ended, and the first one of a new state at a boundary of the calendar. A window ends at the next boundary that is at
 * least half of the calendar's shortest period away: if the calendar was changed, the end before it need not be a boundary.
 */
function moveTo(state: State, { calendar, window }: Policy, instant: number): void {
  let [start, ends] = [state.get(START), state.get(ENDS)]
  if (instant < ends) return
  const boundaries = calendar!.around(instant)
  if (ends === 0) ends = boundaries[0]!
  while (ends <= instant) {
    const earliestEnd = ends + calendar!.shortest / 2
    start = Math.max(0, ends) // of a window that began before 1970
    ends = boundaries.find((boundary) => boundary >= earliestEnd) ?? ends + window
  }
  state.set(START, start)
  state.set(ENDS, ends)
  state.set(COUNT, 0)
}
