import type { Decision } from '@sluice/core'
import { openLimits } from './limits.js'
import { type Charges, mostInAnySpan, promiseOf, type Span, spansIn } from './promise.js'
import { MOST_CALLS, type ReadColumn, type ReadScenario } from './scenario.js'
import { LaterEvents } from './later-events.js'
import { type Arrival, arrivalsOf } from './traffic.js'

export const DENIED = 0
export const ALLOWED = 1
export const WAITING = 2

/** Parts of the shown time. */
export const BINS = 400

/**
 * A row of numbers for each call in their order. `outcome` is DENIED, ALLOWED or WAITING; `turn` the instant at which a call passes;
 * `kept` the units that were charged and not given back. Times are milliseconds from the start.
 */
const ROWS = ['at', 'cost', 'key', 'outcome', 'turn', 'retryAfter', 'remaining', 'reset', 'kept'] as const
type Rows<List> = Record<(typeof ROWS)[number], List>

/** What became of the calls of a column. */
export interface ColumnResult extends Readonly<Rows<Float64Array>> {
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
type Pause = () => Promise<boolean> | undefined

/** Decides all calls under each column. Undefined where `pause` ended it. */
export async function run(
  scenario: ReadScenario,
  pause?: Pause,
): Promise<readonly ColumnResult[] | undefined> {
  const arrivals = arrivalsOf(scenario.settings)
  const results: ColumnResult[] = []
  for (const column of scenario.columns) {
    const result = await new ColumnRun(scenario, column, arrivals, pause).result()
    if (!result) return undefined
    results.push(result)
  }
  return results
}

/** The decision about one call, made once more, and its instant. */
export async function decisionAt(
  scenario: ReadScenario,
  column: number,
  call: number,
): Promise<{ readonly decision: Decision; readonly at: number } | undefined> {
  const arrivals = arrivalsOf(scenario.settings)
  let found: { decision: Decision; at: number } | undefined
  await new ColumnRun(scenario, scenario.columns[column]!, arrivals).result((i, decision, at) => {
    if (i === call) found = { decision, at: at + decision.waitMs }
    return i < call
  })
  return found
}

/** Called with each decision. Where it returns false the run ends. */
type Seen = (call: number, decision: Decision, at: number) => boolean

/** The next try of a call that was denied, or the settling of one that was allowed. */
type Later = Arrival | { readonly row: number; readonly decision: Decision }

/** One column from its first call to its last. */
class ColumnRun {
  readonly #limits
  readonly #later = new LaterEvents<Later>()
  readonly #rows = eachRow((): number[] => [])
  readonly #corrections: Promise<void>[] = []
  readonly #samples: number[][]
  readonly #shown
  #sampled = 0

  constructor(
    readonly scenario: ReadScenario,
    readonly column: ReadColumn,
    readonly arrivals: readonly Arrival[],
    readonly pause: Pause = () => undefined,
  ) {
    this.#limits = openLimits(column)
    this.#shown = shownTime(scenario)
    this.#samples = column.policies.map(() => [])
  }

  async result(goOn: Seen = () => true): Promise<ColumnResult | undefined> {
    const { arrivals } = this
    try {
      for (let next = 0; this.#rows.at.length < MOST_CALLS;) {
        const later = this.#later.takeUntil(arrivals[next]?.at ?? Infinity)
        const event = later?.event ?? arrivals[next++]
        if (!event) break
        this.#moveTo(later?.at ?? arrivals[next - 1]!.at)
        if ('row' in event) this.#settle(event.row, event.decision)
        else {
          const made = this.#limits.decide(`key-${event.key}`, event.cost)
          const decision = made instanceof Promise ? await made : made
          this.#record(event, decision)
          if (!goOn(this.#rows.at.length - 1, decision, this.#limits.now)) return undefined
          this.#follow(event, decision)
        }
        const paused = this.#rows.at.length % 500 === 0 ? this.pause() : undefined
        if (paused && !(await paused)) return undefined
      }
      this.#moveTo(Infinity)
      await Promise.all(this.#corrections)
      return this.#summary()
    } finally {
      this.#limits.close()
    }
  }

  #record({ key, cost }: Arrival, decision: Decision): void {
    const { allowed, waitMs } = decision
    const at = this.#limits.now
    const call: Rows<number> = {
      at,
      cost,
      key,
      outcome: !allowed ? DENIED : waitMs > 0 ? WAITING : ALLOWED,
      turn: !allowed ? NaN : waitMs > 0 ? this.#limits.turn : at,
      retryAfter: decision.retryAfterMs,
      remaining: decision.remaining,
      reset: decision.resetAfterMs,
      kept: allowed ? cost : 0,
    }
    for (const row of ROWS) this.#rows[row].push(call[row])
  }

  /** What a call brings about later: its settling, or its next try. */
  #follow(call: Arrival, decision: Decision): void {
    const at = this.#limits.now
    const { real, takes, retry, span } = this.scenario.settings
    if (decision.allowed) {
      const settled = at + decision.waitMs + takes
      if (real !== undefined && real !== call.cost)
        this.#later.add(settled, { row: this.#rows.at.length - 1, decision })
      return
    }
    if (call.obeys === undefined) return
    const wait = call.obeys ? decision.retryAfterMs : retry
    if (at + wait < span) this.#later.add(at + wait, call)
  }

  #settle(row: number, decision: Decision): void {
    const { real } = this.scenario.settings
    const taken = decision.settle(real!).then((units) => void (this.#rows.kept[row]! += Math.min(0, units)))
    this.#corrections.push(taken)
  }

  /** Sets the clock, and on the way notes the units that are left at the start of each bin. */
  #moveTo(at: number): void {
    const { from, to } = this.#shown
    for (; this.#sampled < BINS; this.#sampled++) {
      const instant = from + (this.#sampled * (to - from)) / BINS
      if (instant >= at) break
      this.#limits.now = instant
      const left = this.#limits.remaining(`key-${this.scenario.settings.key}`)
      for (const [i, samples] of this.#samples.entries()) samples.push(left[i]!)
    }
    if (at !== Infinity) this.#limits.now = at
  }

  #summary(): ColumnResult {
    const byKey = this.#chargesByKey()
    const shown = byKey.get(this.scenario.settings.key) ?? { at: [], units: [] }
    const policies = this.column.policies.map((policy, i) => ({
      name: policy.name,
      windowMs: policy.windowMs,
      limit: policy.limit,
      capacity: policy.capacity,
      isAligned: policy.algorithm.name === 'fixed-window',
      promise: promiseOf(policy),
      most: Math.max(0, ...[...byKey.values()].map((charges) => mostInAnySpan(charges, policy.windowMs))),
      used: spansIn(shown, policy.windowMs, this.#shown, BINS),
      remaining: Float64Array.from(this.#samples[i]!),
    }))
    return {
      ...eachRow((row) => Float64Array.from(this.#rows[row])),
      policies,
      totals: this.#totals(),
      cutOff: this.#rows.at.length >= MOST_CALLS,
    }
  }

  /** Charges count at the turns of their calls, which come in order for each key. */
  #chargesByKey(): ReadonlyMap<number, Charges> {
    const byKey = new Map<number, { at: number[]; units: number[] }>()
    for (const [i, units] of this.#rows.kept.entries()) {
      if (units <= 0) continue
      const key = this.#rows.key[i]!
      let charges = byKey.get(key)
      if (!charges) byKey.set(key, (charges = { at: [], units: [] }))
      charges.at.push(this.#rows.turn[i]!)
      charges.units.push(units)
    }
    return byKey
  }

  #totals(): Totals {
    const count = { [DENIED]: 0, [ALLOWED]: 0, [WAITING]: 0 }
    const since = new Map<number, number>()
    let longestLockOut = 0
    for (const [i, outcome] of this.#rows.outcome.entries()) {
      count[outcome as 0 | 1 | 2]++
      const key = this.#rows.key[i]!
      if (outcome !== DENIED) since.delete(key)
      else {
        const at = this.#rows.at[i]!
        if (!since.has(key)) since.set(key, at)
        longestLockOut = Math.max(longestLockOut, at + this.#rows.retryAfter[i]! - since.get(key)!)
      }
    }
    const served = count[ALLOWED] + count[WAITING]
    return { served, denied: count[DENIED], waited: count[WAITING], longestLockOut }
  }
}

function eachRow<List>(make: (row: keyof Rows<List>) => List): Rows<List> {
  return Object.fromEntries(ROWS.map((row) => [row, make(row)])) as Rows<List>
}
