import type { Decision } from '@sluice/core'
import { getOrMake } from '@sluice/http'
import { type Answer, answersOf } from './headers.js'
import { LaterEvents } from './later-events.js'
import { type Limits, openLimits } from './limits.js'
import { type Charges, mostInAnySpan, promiseOf, type Span, spansIn } from './promise.js'
import { MOST_CALLS, type ReadColumn, type ReadScenario } from './scenario.js'
import { type Arrival, arrivalsOf } from './traffic.js'

export const DENIED = 0
export const ALLOWED = 1
export const WAITING = 2

/** Parts of the shown time. */
export const BINS = 400

/**
 * A number for each call in their order. `outcome` is DENIED, ALLOWED or WAITING; `turn` the instant at which a call passes, NaN if it
 * does not; `kept` the units that were charged and not given back. Times are milliseconds from the start.
 */
const ROWS = ['at', 'cost', 'key', 'outcome', 'turn', 'retryAfter', 'remaining', 'reset', 'kept'] as const
type Rows<List> = Readonly<Record<(typeof ROWS)[number], List>>

/** What became of the calls of a column. */
export interface ColumnResult extends Rows<Float64Array> {
  readonly policies: readonly PolicyResult[]
  readonly totals: Totals
  /** Calls that clients would have repeated but for the bound on calls. */
  readonly cutOff: boolean
}

/** One policy of a column. The curves are those of the shown key, over the shown time. */
export interface PolicyResult {
  readonly name: string
  readonly windowMs: number
  readonly limit: number
  readonly capacity: number
  readonly isAligned: boolean
  readonly promise: number
  /** The most units that any key was charged in any span of a window. */
  readonly most: number
  readonly used: Float64Array
  readonly remaining: Float64Array
}

export interface Totals {
  readonly served: number
  readonly denied: number
  readonly waited: number
  /** Milliseconds, of one key, from a denial until the end of the last wait before a call of its passes. */
  readonly longestLockOut: number
}

/** The shown time, of which an end of 0 is that of the traffic. */
export function shownTime({ settings }: ReadScenario): Span {
  const { kind, calls, span, from, to } = settings
  const end = kind === 'list' ? Math.max(1000, (calls.at(-1)?.at ?? 0) * 1.02) : span
  const last = to > from ? Math.min(to, end) : end
  return { from: Math.min(from, last - 1), to: last }
}

/** Called now and then. A promise is waited for; one of false ends the run. */
export type Pause = () => Promise<boolean> | undefined

/** Decides all calls under each column. Undefined where `pause` ended it. */
export async function run(
  scenario: ReadScenario,
  pause: Pause = () => undefined,
): Promise<readonly ColumnResult[] | undefined> {
  const arrivals = arrivalsOf(scenario.settings)
  const results: ColumnResult[] = []
  for (const column of scenario.columns) {
    const columnRun = new ColumnRun(scenario, column)
    if (!(await columnRun.decide(arrivals, pause))) return undefined
    results.push(columnRun.result())
  }
  return results
}

/**
 * What the client of a call is answered. The column is decided once more as far as that call, as to keep each decision of 100,000
 * calls takes longer than to make them. Undefined where `pause` ended it.
 */
export async function answersAt(
  scenario: ReadScenario,
  column: number,
  call: number,
  pause: Pause = () => undefined,
): Promise<readonly Answer[] | undefined> {
  const columnRun = new ColumnRun(scenario, scenario.columns[column]!)
  if (!(await columnRun.decide(arrivalsOf(scenario.settings), pause, call + 1))) return undefined
  const { decision, at } = columnRun.latest!
  return answersOf(decision, at + decision.waitMs)
}

/** The next try of a call that was denied, or the settling of one that was allowed. */
type Later = Arrival | { readonly at: number; readonly call: number; readonly decision: Decision }

/** One column from its first call on. */
class ColumnRun {
  latest: { readonly decision: Decision; readonly at: number } | undefined
  readonly #limits: Limits
  readonly #rows = eachRow((): number[] => [])
  readonly #later = new LaterEvents<Later>()
  readonly #corrections: Promise<void>[] = []
  /** The units left of each policy at the start of each bin. */
  readonly #left: (readonly number[])[] = []
  readonly #shown

  constructor(
    readonly scenario: ReadScenario,
    readonly column: ReadColumn,
  ) {
    this.#limits = openLimits(column)
    this.#shown = shownTime(scenario)
  }

  /** Decides the calls, at most so many. Returns whether `pause` let it come to the end. */
  async decide(arrivals: readonly Arrival[], pause: Pause, most = MOST_CALLS): Promise<boolean> {
    try {
      for (let next = 0; this.#rows.at.length < most;) {
        const isLater = this.#later.nextAt <= (arrivals[next]?.at ?? Number.MAX_VALUE)
        const event = isLater ? this.#later.take() : arrivals[next++]
        if (!event) break
        this.#moveTo(event.at)
        if ('decision' in event) this.#settle(event.call, event.decision)
        else {
          const made = this.#limits.decide(event.key, event.cost)
          this.#record(event, made instanceof Promise ? await made : made)
        }
        const paused = this.#rows.at.length % 500 === 0 ? pause() : undefined
        if (paused && !(await paused)) return false
      }
      this.#moveTo(Infinity)
      await Promise.all(this.#corrections)
      return true
    } finally {
      this.#limits.close()
    }
  }

  /** Keeps what was decided, and what it brings about later: the settling of the call, or its next try. */
  #record({ key, cost, obeys }: Arrival, decision: Decision): void {
    const { real, takes, retry, span } = this.scenario.settings
    const { allowed, waitMs, retryAfterMs } = decision
    const at = this.#limits.now
    const rows = this.#rows
    rows.at.push(at)
    rows.cost.push(cost)
    rows.key.push(key)
    rows.outcome.push(!allowed ? DENIED : waitMs > 0 ? WAITING : ALLOWED)
    rows.turn.push(!allowed ? NaN : waitMs > 0 ? this.#limits.turn : at)
    rows.retryAfter.push(retryAfterMs)
    rows.remaining.push(decision.remaining)
    rows.reset.push(decision.resetAfterMs)
    rows.kept.push(allowed ? cost : 0)
    this.latest = { decision, at }
    if (allowed && real !== undefined && real !== cost)
      this.#later.add({ at: at + waitMs + takes, call: rows.at.length - 1, decision })
    const again = at + (obeys ? retryAfterMs : retry)
    if (!allowed && obeys !== undefined && again < span) this.#later.add({ at: again, key, cost, obeys })
  }

  #settle(call: number, decision: Decision): void {
    const settled = decision.settle(this.scenario.settings.real!)
    this.#corrections.push(settled.then((units) => void (this.#rows.kept[call]! += Math.min(0, units))))
  }

  /** Sets the clock, and on the way notes the units that are left at the start of each bin. */
  #moveTo(at: number): void {
    const { from, to } = this.#shown
    while (this.#left.length < BINS) {
      const instant = from + (this.#left.length * (to - from)) / BINS
      if (instant >= at) break
      this.#limits.now = instant
      this.#left.push(this.#limits.remaining(this.scenario.settings.key))
    }
    if (at !== Infinity) this.#limits.now = at
  }

  result(): ColumnResult {
    const rows = eachRow((name) => new Float64Array(this.#rows[name]))
    const charges = chargesByKey(rows)
    const policies = this.column.policies.map(({ name, windowMs, limit, capacity, algorithm }, i) => ({
      name,
      windowMs,
      limit,
      capacity,
      isAligned: algorithm.name === 'fixed-window',
      promise: promiseOf(this.column.policies[i]!),
      most: Math.max(0, ...[...charges.values()].map((each) => mostInAnySpan(each, windowMs))),
      used: spansIn(charges.get(this.scenario.settings.key) ?? NO_CHARGES, windowMs, this.#shown, BINS),
      remaining: Float64Array.from(this.#left, (left) => left[i]!),
    }))
    return { ...rows, policies, totals: totalsOf(rows), cutOff: rows.at.length >= MOST_CALLS }
  }
}

function eachRow<List>(make: (name: keyof Rows<List>) => List): Rows<List> {
  return Object.fromEntries(ROWS.map((name) => [name, make(name)])) as Rows<List>
}

const NO_CHARGES: Charges = { turns: [], kept: [] }

/** Charges count at the turns of their calls, which come in order for each key. */
function chargesByKey({ key, turn, kept }: Rows<Float64Array>): ReadonlyMap<number, Charges> {
  const byKey = new Map<number, { turns: number[]; kept: number[] }>()
  for (let i = 0; i < key.length; i++) {
    if (!(kept[i]! > 0)) continue
    const charges = getOrMake(byKey, key[i]!, () => ({ turns: [], kept: [] }))
    charges.turns.push(turn[i]!)
    charges.kept.push(kept[i]!)
  }
  return byKey
}

function totalsOf({ at, key, outcome, retryAfter }: Rows<Float64Array>): Totals {
  const count: [denied: number, allowed: number, waited: number] = [0, 0, 0]
  const since = new Map<number, number>()
  let longestLockOut = 0
  for (let i = 0; i < at.length; i++) {
    count[outcome[i] as 0 | 1 | 2]++
    if (outcome[i] !== DENIED) since.delete(key[i]!)
    else {
      const start = getOrMake(since, key[i]!, () => at[i]!)
      longestLockOut = Math.max(longestLockOut, at[i]! + retryAfter[i]! - start)
    }
  }
  const [denied, allowed, waited] = count
  return { served: allowed + waited, denied, waited, longestLockOut }
}
