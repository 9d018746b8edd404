import type { Decision } from '@sluice/core'
import { getOrMake } from '@sluice/http'
import { type Limits, openLimits } from './limits.js'
import { type Charge, mostInAnySpan, promiseOf, type Span, spansIn } from './promise.js'
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
type Row = 'at' | 'cost' | 'key' | 'outcome' | 'turn' | 'retryAfter' | 'remaining' | 'reset' | 'kept'

/** What became of the calls of a column. */
export interface ColumnResult extends Readonly<Record<Row, Float64Array>> {
  readonly policies: readonly PolicyResult[]
  readonly totals: Totals
  /** Calls that clients would have repeated but for the bound on calls. */
  readonly cutOff: boolean
}

export interface DecidedColumn extends ColumnResult {
  /** One for each call. */
  readonly decisions: readonly Decision[]
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
type Pause = () => Promise<boolean> | undefined

/** Decides all calls under each column. Undefined where `pause` ended it. */
export async function run(
  scenario: ReadScenario,
  pause: Pause = () => undefined,
): Promise<readonly DecidedColumn[] | undefined> {
  const arrivals = arrivalsOf(scenario.settings)
  const results: DecidedColumn[] = []
  for (const column of scenario.columns) {
    const limits = openLimits(column)
    try {
      const columnRun = new ColumnRun(scenario, column, limits)
      if (!(await columnRun.decide(arrivals, pause))) return undefined
      results.push(columnRun.result())
    } finally {
      limits.close()
    }
  }
  return results
}

/** A call that was decided at an instant. */
interface Call {
  readonly at: number
  readonly key: number
  readonly cost: number
  readonly decision: Decision
  readonly turn: number
  kept: number
}

/** The next try of a call that was denied, or the settling of one that was allowed. */
type Later = Arrival | { readonly at: number; readonly settled: Call }

/** One column from its first call to its last. */
class ColumnRun {
  readonly #calls: Call[] = []
  /** The next one last. */
  readonly #later: Later[] = []
  readonly #corrections: Promise<void>[] = []
  /** The units left of each policy at the start of each bin. */
  readonly #left: (readonly number[])[] = []
  readonly #shown

  constructor(
    readonly scenario: ReadScenario,
    readonly column: ReadColumn,
    readonly limits: Limits,
  ) {
    this.#shown = shownTime(scenario)
  }

  /** Decides every call. Returns whether `pause` let it come to the end. */
  async decide(arrivals: readonly Arrival[], pause: Pause): Promise<boolean> {
    for (let next = 0; this.#calls.length < MOST_CALLS;) {
      const isLater = (this.#later.at(-1)?.at ?? Infinity) <= (arrivals[next]?.at ?? Number.MAX_VALUE)
      const event = isLater ? this.#later.pop() : arrivals[next++]
      if (!event) break
      this.#moveTo(event.at)
      if ('settled' in event) this.#settle(event.settled)
      else {
        const made = this.limits.decide(`key-${event.key}`, event.cost)
        this.#record(event, made instanceof Promise ? await made : made)
      }
      const paused = this.#calls.length % 500 === 0 ? pause() : undefined
      if (paused && !(await paused)) return false
    }
    this.#moveTo(Infinity)
    await Promise.all(this.#corrections)
    return true
  }

  /** Keeps a decision, and what it brings about later: its settling, or the next try. */
  #record({ key, cost, obeys }: Arrival, decision: Decision): void {
    const { real, takes, retry, span } = this.scenario.settings
    const { allowed } = decision
    const at = this.limits.now
    const turn = allowed ? (decision.waitMs > 0 ? this.limits.turn : at) : NaN
    const call: Call = { at, key, cost, decision, turn, kept: allowed ? cost : 0 }
    this.#calls.push(call)
    if (allowed && real !== undefined && real !== cost)
      this.#add({ at: at + decision.waitMs + takes, settled: call })
    const again = at + (obeys ? decision.retryAfterMs : retry)
    if (!allowed && obeys !== undefined && again < span) this.#add({ at: again, key, cost, obeys })
  }

  /** Of events at one instant the one that was added first comes first. */
  #add(event: Later): void {
    let [low, high] = [0, this.#later.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#later[middle]!.at > event.at) low = middle + 1
      else high = middle
    }
    this.#later.splice(low, 0, event)
  }

  #settle(call: Call): void {
    const settled = call.decision.settle(this.scenario.settings.real!)
    this.#corrections.push(settled.then((units) => void (call.kept += Math.min(0, units))))
  }

  /** Sets the clock, and on the way notes the units that are left at the start of each bin. */
  #moveTo(at: number): void {
    const { from, to } = this.#shown
    while (this.#left.length < BINS) {
      const instant = from + (this.#left.length * (to - from)) / BINS
      if (instant >= at) break
      this.limits.now = instant
      this.#left.push(this.limits.remaining(`key-${this.scenario.settings.key}`))
    }
    if (at !== Infinity) this.limits.now = at
  }

  result(): DecidedColumn {
    const calls = this.#calls
    const row = (of: (call: Call) => number): Float64Array => new Float64Array(calls.map(of))
    const charges = this.#chargesByKey()
    const policies = this.column.policies.map(({ name, windowMs, limit, capacity, algorithm }, i) => ({
      name,
      windowMs,
      limit,
      capacity,
      isAligned: algorithm.name === 'fixed-window',
      promise: promiseOf(this.column.policies[i]!),
      most: Math.max(0, ...[...charges.values()].map((each) => mostInAnySpan(each, windowMs))),
      used: spansIn(charges.get(this.scenario.settings.key) ?? [], windowMs, this.#shown, BINS),
      remaining: Float64Array.from(this.#left, (left) => left[i]!),
    }))
    return {
      at: row(({ at }) => at),
      cost: row(({ cost }) => cost),
      key: row(({ key }) => key),
      outcome: row(({ decision }) => outcomeOf(decision)),
      turn: row(({ turn }) => turn),
      retryAfter: row(({ decision }) => decision.retryAfterMs),
      remaining: row(({ decision }) => decision.remaining),
      reset: row(({ decision }) => decision.resetAfterMs),
      kept: row(({ kept }) => kept),
      policies,
      totals: totalsOf(calls),
      cutOff: calls.length >= MOST_CALLS,
      decisions: calls.map(({ decision }) => decision),
    }
  }

  /** Charges count at the turns of their calls, which come in order for each key. */
  #chargesByKey(): ReadonlyMap<number, readonly Charge[]> {
    const byKey = new Map<number, Charge[]>()
    for (const call of this.#calls) if (call.kept > 0) getOrMake(byKey, call.key, () => []).push(call)
    return byKey
  }
}

function outcomeOf({ allowed, waitMs }: Decision): number {
  return !allowed ? DENIED : waitMs > 0 ? WAITING : ALLOWED
}

function totalsOf(calls: readonly Call[]): Totals {
  const count = [0, 0, 0] // by outcome
  const since = new Map<number, number>()
  let longestLockOut = 0
  for (const { at, key, decision } of calls) {
    count[outcomeOf(decision)]!++
    if (decision.allowed) since.delete(key)
    else {
      const start = getOrMake(since, key, () => at)
      longestLockOut = Math.max(longestLockOut, at + decision.retryAfterMs - start)
    }
  }
  const [denied, allowed, waited] = count as [number, number, number]
  return { served: allowed + waited, denied, waited, longestLockOut }
}
