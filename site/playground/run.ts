import type { Decision } from '@sluice/core'
import { getOrMake } from '@sluice/http'
import { answersOf } from './headers.js'
import { LaterEvents } from './later-events.js'
import { Limits } from './limits.js'
import { type Charge, mostInAnySpan, type Span, spansIn } from './spans.js'
import { MOST_CALLS, type ReadColumn, type ReadScenario } from './scenario.js'
import { type Arrival, arrivalsOf } from './traffic.js'

/** Parts of the shown time. */
export const BINS = 400

/**
 * The record of each call. `turn` is the instant at which it passes, NaN if it does not; `kept` the units that were charged and not
 * given back. Times are milliseconds from the start.
 */
const ROWS = ['at', 'cost', 'key', 'turn', 'retryAfterMs', 'remaining', 'resetAfterMs', 'kept'] as const
type Rows = Readonly<Record<(typeof ROWS)[number], Float64Array>>

/** The outcomes of the calls of a column: a row of numbers for each that is kept, in the order of the calls; and its policies. */
export type ColumnResult = ReturnType<ColumnRun['result']>
export type PolicyResult = ColumnResult['policies'][number]

/** The shown time, of which an end of 0 is that of the traffic. */
export function shownTime({ settings }: ReadScenario): Span {
  const { from, to } = settings
  const end = endOf(settings)
  const last = to > from ? Math.min(to, end) : end
  return { from: Math.min(from, last - 1), to: last }
}

/** The shown time, `factor` times as long and moved by a `share` of it: within the traffic, and no shorter than a second. */
export function otherTime(scenario: ReadScenario, factor: number, share = 0): Span {
  const { from, to } = shownTime(scenario)
  const end = endOf(scenario.settings)
  const width = Math.min(end, Math.max(1000, (to - from) * factor))
  const start = Math.max(0, Math.min(end - width, (from + to - width) / 2 + share * (to - from)))
  return { from: Math.round(start), to: Math.round(start + width) }
}

/** The end of the traffic, in milliseconds from the start. */
function endOf({ kind, calls, span }: ReadScenario['settings']): number {
  return kind === 'list' ? Math.max(1000, (calls.at(-1)?.at ?? 0) * 1.02) : span
}

/** Decides all calls under each column. */
export async function run(scenario: ReadScenario): Promise<readonly ColumnResult[]> {
  const arrivals = arrivalsOf(scenario.settings)
  const results: ColumnResult[] = []
  for (const column of scenario.columns) {
    const columnRun = new ColumnRun(scenario, column)
    await columnRun.decide(arrivals)
    results.push(columnRun.result())
  }
  return results
}

/**
 * The answer to the client of a call. The column is decided once more as far as that call, as to keep each decision of 100,000
 * calls takes longer than to make them.
 */
export async function answersAt(scenario: ReadScenario, column: number, call: number) {
  const columnRun = new ColumnRun(scenario, scenario.columns[column]!)
  await columnRun.decide(arrivalsOf(scenario.settings), call + 1)
  const { decision, at } = columnRun.latest!
  return answersOf(decision, at + decision.waitMs)
}

/** The next try of a call that was denied, or the settling of one that was allowed. */
type Later = Arrival | { readonly at: number; readonly call: number; readonly decision: Decision }

/** One column from its first call on. */
class ColumnRun {
  latest: { readonly decision: Decision; readonly at: number } | undefined
  readonly #limits: Limits
  #calls = 0
  readonly #rows = ROWS.map((): number[] => [])
  readonly #later = new LaterEvents<Later>()
  readonly #corrections: Promise<void>[] = []
  /** The units left of each policy at the start of each bin. */
  readonly #left: (readonly number[])[] = []
  readonly #shown

  constructor(
    readonly scenario: ReadScenario,
    readonly column: ReadColumn,
  ) {
    this.#limits = new Limits(column)
    this.#shown = shownTime(scenario)
  }

  /** Decides the calls, at most so many. */
  async decide(arrivals: readonly Arrival[], most = MOST_CALLS): Promise<void> {
    try {
      for (let next = 0; this.#calls < most;) {
        const isLater = this.#later.nextAt <= (arrivals[next]?.at ?? Number.MAX_VALUE)
        const event = isLater ? this.#later.take() : arrivals[next++]
        if (!event) break
        this.#moveTo(event.at)
        if ('decision' in event) this.#settle(event.call, event.decision)
        else {
          const made = this.#limits.decide(event.key, event.cost)
          this.#record(event, 'allowed' in made ? made : await made)
        }
      }
      this.#moveTo(Infinity)
      await Promise.all(this.#corrections)
    } finally {
      this.#limits.close()
    }
  }

  /** Keeps what was decided, and what it brings about later: the settling of the call, or its next try. */
  #record({ key, cost, obeys }: Arrival, decision: Decision): void {
    const { real, takes, retry, span } = this.scenario.settings
    const { allowed, waitMs, retryAfterMs, remaining, resetAfterMs } = decision
    const at = this.#limits.now
    const turn = !allowed ? NaN : waitMs > 0 ? this.#limits.turn : at
    // An object of each call would take longer.
    const numbers = [at, cost, key, turn, retryAfterMs, remaining, resetAfterMs, allowed ? cost : 0]
    for (let row = 0; row < numbers.length; row++) this.#rows[row]!.push(numbers[row]!)
    const call = this.#calls++
    this.latest = { decision, at }
    if (allowed && real !== undefined && real !== cost)
      this.#later.add({ at: at + waitMs + takes, call, decision })
    const again = at + (obeys ? retryAfterMs : retry)
    if (!allowed && obeys !== undefined && again < span) this.#later.add({ at: again, key, cost, obeys })
  }

  #settle(call: number, decision: Decision): void {
    const settled = decision.settle(this.scenario.settings.real!)
    const kept = this.#rows.at(-1)!
    this.#corrections.push(settled.then((units) => void (kept[call]! += Math.min(0, units))))
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

  /** The curves of the policies are those of the shown key, over the shown time. */
  result() {
    const { key } = this.scenario.settings
    const lists = ROWS.map((name, row) => [name, new Float64Array(this.#rows[row]!)])
    const rows = Object.fromEntries(lists) as Rows
    // Charges count at the turns of their calls, which come in order for each key.
    const charged = new Map<number, Charge[]>([[key, []]])
    rows.kept.forEach((kept, call) => {
      if (kept > 0) getOrMake(charged, rows.key[call]!, () => []).push({ turn: rows.turn[call]!, kept })
    })
    const policies = this.column.policies.map((policy, i) => ({
      name: policy.name,
      windowMs: policy.windowMs,
      limit: policy.limit,
      // More than the capacity may pass at once where one window ends and another begins.
      isAligned: policy.algorithm.bounds.most(policy, 2) > policy.capacity,
      promise: policy.algorithm.bounds.most(policy, policy.window),
      /** The most units that any key was charged in any span of a window. */
      most: Math.max(...[...charged.values()].map((calls) => mostInAnySpan(calls, policy.windowMs))),
      used: spansIn(charged.get(key)!, policy.windowMs, this.#shown, BINS),
      remaining: Float64Array.from(this.#left, (left) => left[i]!),
    }))
    return {
      ...rows,
      policies,
      totals: totalsOf(rows),
      /** Whether clients would have repeated more calls, but for the bound on them. */
      isCutOff: this.#calls >= MOST_CALLS,
    }
  }
}

/** Times are in milliseconds; the longest lock-out is that of one key, from a denial until the end of the last wait before a call passes. */
function totalsOf({ at, key, turn, retryAfterMs }: Rows) {
  let [denied, waited, longestLockOut] = [0, 0, 0]
  const since = new Map<number, number>()
  at.forEach((start, call) => {
    if (turn[call]! > start) waited++
    if (turn[call]! >= start) since.delete(key[call]!)
    else {
      denied++
      const from = getOrMake(since, key[call]!, () => start)
      longestLockOut = Math.max(longestLockOut, start + retryAfterMs[call]! - from)
    }
  })
  return { served: at.length - denied, denied, waited, longestLockOut }
}
