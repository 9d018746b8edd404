import type { Policy, PolicyError } from '@sluice/core'
import { formatDuration, copiedText } from '@sluice/core/internal'
import { algorithms } from '@sluice/core/store'
import { type AlgorithmName, capacityOption, makePolicy, type PolicyEntry } from '@sluice/policies'
import type { LoggedCall } from '../logs/calls.js'
import type { HabitsByCaller } from '../logs/habits.js'
import type { Reading } from '../logs/read-logs.js'
import { Spread } from '../logs/spread.js'
import { type Basis, LEAST_UNITS, Survey } from './basis.js'
import { Callers } from './callers.js'
import { Cell, peakIn } from './cell.js'
import { type CallerCalls, type Shelf, Trace } from './trace.js'
import type { Figures } from './tally.js'

export interface SuggestOptions {
  /** In milliseconds. */
  readonly windows: readonly number[]
  /** @default limits that leave 90 %, 99 %, `untouched`, 99.99 % and all of the callers alone */
  readonly limits?: readonly number[] | undefined
  readonly algorithm: AlgorithmName
  /** The capacity of an algorithm that has one. */
  readonly burst?: number | undefined
  /** The percentage of callers that a recommended limit leaves alone. */
  readonly untouched: number
  readonly shelf?: Shelf
  /** Ends deciding. Where it has ended the reading already, what was read is decided, for a tenth of a second at most. */
  readonly signal?: AbortSignal | undefined
}

export interface SuggestReport {
  readonly version: 1
  readonly command: 'suggest'
  readonly basis: Basis
  readonly windows: readonly WindowReport[]
}

/** The limits that a log suggests for one window. */
export interface WindowReport {
  readonly windowMs: number
  /** Why there are no figures. */
  readonly without?: 'this log is too coarse' | 'this log is too short' | 'interrupted'
  /** The figures are left out where the log is too coarse for the policy, and of all policies after an interruption. */
  readonly cells: readonly { readonly limit: number; readonly figures?: Figures }[]
  /** For each peak, how many callers have it: the smallest limit under which they are never denied. null: none is enough. */
  readonly peaks: readonly (readonly [peak: number | null, callers: number])[]
  /** The ten callers with the highest peaks, the highest first. */
  readonly highest: readonly HighCaller[]
  /** The policy, and the smallest peak beyond its limit; null if no caller is beyond it. */
  readonly recommended?: { readonly policy: PolicyEntry; readonly next: number | null }
}

/** A caller, his peak (null: no limit is enough) and the number of his calls. */
export interface HighCaller {
  readonly key: string
  readonly peak: number | null
  readonly calls: number
}

/**
 * Finds limits that would have suited the callers of a log. The log is read once, and its calls are kept by caller in a
 * trace. Then all callers are visited twice: to find each caller's peak in each window (the smallest limit that never
 * denies him), and to replay him under the limits that these peaks suggest. If the signal has ended the reading, what was
 * read is still judged, for a tenth of a second at most.
 * @throws {PolicyError} for a limit or burst that the algorithm does not take.
 */
export async function suggest(reading: Reading, options: SuggestOptions): Promise<SuggestReport> {
  // Throws for limits and bursts that the algorithm does not take, before the log is read.
  for (const windowMs of options.windows)
    for (const limit of options.limits ?? [1]) makePolicy(entryOf(options, windowMs, limit))
  const callers = new Callers()
  const keys: string[] = []
  const survey = new Survey()
  const trace = new Trace(options.shelf)
  const spread = new Spread(reading)
  /** Counts calls for the report, and keeps each in the trace with the number of its caller, whose key is kept once in `keys`. */
  const keep = (calls: readonly LoggedCall[]): void => {
    for (const call of calls) {
      survey.add(call)
      const [key] = call.keys
      const caller = callers.numberFor(key!)
      if (caller === keys.length) {
        keys.push(copiedText(key!)) // a key that was cut out of a line would hold the whole line
        options.shelf?.hold?.(CALLER_BYTES + 2 * key!.length)
      }
      trace.add(caller, call.at, call.cost)
    }
  }
  for await (const batch of reading.batches) keep(spread.add(batch))
  keep(spread.end())
  const spanMs = (survey.last - survey.first) / 1000
  const leastScale = LEAST_UNITS * reading.resolution
  const columns = options.windows.map((windowMs) => new Column(windowMs, options, leastScale, spanMs))
  const signal = options.signal?.aborted ? AbortSignal.timeout(100) : options.signal
  const isMeasured = await trace.forEach(columns, (column, calls) => column.measure(calls), signal)
  if (isMeasured) for (const column of columns) column.choose(callers.size)
  const decide = (column: Column, calls: CallerCalls): void => column.decide(calls, keys[calls.caller]!)
  const isDecided = isMeasured && (await trace.forEach(columns, decide, signal))
  const basis = survey.basis(reading, callers.size, options.signal)
  return {
    version: 1,
    command: 'suggest',
    basis,
    windows: columns.map((column) => column.report(isDecided, reading.habits, keys)),
  }
}

/** One window: first the peaks of all callers, then the limits that these suggest. */
class Column {
  readonly #without: WindowReport['without']
  readonly #policyOfLimit1: Policy
  readonly #peaks = new Map<number, number>()
  /** The highest peak so far that is a limit which the algorithm takes: below it none is tried. */
  #highestTaken = 0
  #highest: readonly { readonly caller: number; readonly peak: number; readonly calls: number }[] = []
  readonly #cells = new Map<number, Cell | undefined>()
  /** The cells of the table, and of these the ones that the log is fine enough to judge. */
  #shown: readonly Cell[] = []
  #judged: readonly Cell[] = []
  #recommended: number | undefined

  /**
   * Begins a column of the table, for limits with a window of `windowMs`. It gets no figures if the log cannot judge them: if its times
   * are too coarse, as the window is shorter than `leastScale` microseconds, or if it spans `spanMs`, less than 0.9 of the window. The
   * policies of other limits are made from that of limit 1.
   */
  constructor(
    readonly windowMs: number,
    readonly options: SuggestOptions,
    readonly leastScale: number,
    spanMs: number,
  ) {
    this.#policyOfLimit1 = makePolicy(entryOf(options, windowMs, 1))
    if (windowMs * 1000 < leastScale) this.#without = 'this log is too coarse'
    else if (spanMs < SHORTEST * windowMs) this.#without = 'this log is too short'
  }

  /** Finds the peak of one caller, the smallest limit that never denies him. Counts him under it, and lists the ten highest peaks. */
  measure(calls: CallerCalls): void {
    if (this.#without) return
    const peak = this.#peakOf(calls)
    this.#peaks.set(peak, (this.#peaks.get(peak) ?? 0) + 1)
    if (this.#highest.length === MOST_HIGHEST && peak <= this.#highest.at(-1)!.peak) return
    const withCaller = [...this.#highest, { caller: calls.caller, peak, calls: calls.to - calls.from }]
    this.#highest = withCaller.sort((one, other) => other.peak - one.peak).slice(0, MOST_HIGHEST)
  }

  /**
   * The smallest limit that never denies a caller; Infinity if the algorithm takes no limit as large. If a policy admits no more
   * than its capacity in a span as long as its reach, as a sliding log does, the limit is the most units in any such span. Otherwise
   * limits are tried.
   */
  #peakOf(calls: CallerCalls): number {
    const { algorithm, capacity } = this.#policyOfLimit1
    const reach = algorithm.bounds.reach(this.#policyOfLimit1)
    const admitsItsCapacityInAReach = algorithm.bounds.most(this.#policyOfLimit1, reach) === capacity
    if (!admitsItsCapacityInAReach) return this.#searchPeak(calls)
    const peak = Math.max(1, peakIn(calls, reach))
    if (peak > this.#highestTaken && this.#cellOf(peak) === undefined) return Infinity
    this.#highestTaken = Math.max(peak, this.#highestTaken)
    return peak
  }

  /** Finds that limit by trying: limits are doubled until one is enough, then the gap down to one that is not (`below`) is halved. */
  #searchPeak(calls: CallerCalls): number {
    let [below, limit] = [0, 1]
    for (; !this.#isUntouched(limit, calls); limit *= 2) {
      if (this.#cellOf(limit) === undefined) return Infinity
      below = limit
    }
    while (limit - below > 1) {
      const middle = Math.floor((below + limit) / 2)
      if (this.#isUntouched(middle, calls)) limit = middle
      else below = middle
    }
    return limit
  }

  /**
   * Whether a limit denies none of a caller's calls; false for a limit that the algorithm does not take. A caller with no more units
   * than the capacity in any span of the policy is never denied; for others the calls are replayed, up to the first denial.
   */
  #isUntouched(limit: number, calls: CallerCalls): boolean {
    const cell = this.#cellOf(limit)
    if (cell === undefined) return false
    return peakIn(calls, cell.span) <= cell.policy.capacity || cell.replay(calls, 1).denied === 0
  }

  /**
   * Chooses the limits that the report shows for this window, when the peaks of all `callers` are known: the limits that the user
   * gave, or those that leave 90 %, 99 % and so on of the callers alone; and in any case the limit for the percentage `untouched`.
   * That one is recommended, unless the log's times are too coarse for it; such limits are shown without figures.
   */
  choose(callers: number): void {
    if (this.#without || callers === 0) return
    const { untouched, limits } = this.options
    const limit = this.#limitFor(untouched, callers)
    const auto = [90, 99, untouched, 99.99, 100].map((percentage) => this.#limitFor(percentage, callers))
    const chosen = [...new Set([...(limits ?? auto), limit])].sort((one, other) => one - other)
    this.#shown = chosen.map((shown) => this.#cellOf(shown)).filter((cell) => cell !== undefined)
    this.#judged = this.#shown.filter(
      ({ policy }) => policy.algorithm.bounds.scale(policy) >= this.leastScale,
    )
    if (this.#judged.some(({ policy }) => policy.limit === limit)) this.#recommended = limit
  }

  /**
   * The smallest limit that never denies this percentage of the callers. The rest of them may have higher peaks, so the highest
   * peaks are passed over until there are more than the rest. 1e-9 makes up for rounding below a whole number.
   */
  #limitFor(percentage: number, callers: number): number {
    let rest = Math.floor((callers * (100 - percentage)) / 100 + 1e-9)
    const descending = [...this.#peaks].sort(([one], [other]) => other - one)
    for (const [peak, count] of descending) {
      if (count > rest) return peak
      rest -= count
    }
    return 1
  }

  /**
   * Replays the calls of one caller (`key`) under each chosen limit, and adds his denials to that limit's figures. A caller
   * whose `peak` in the policy's span is within its capacity needs no replay.
   */
  decide(calls: CallerCalls, key: string): void {
    let [span, peak] = [0, 0]
    for (const cell of this.#judged) {
      const isSameSpan = cell.span === span
      if (!isSameSpan) peak = peakIn(calls, (span = cell.span))
      if (peak <= cell.policy.capacity) continue
      const hit = cell.replay(calls)
      if (hit.denied > 0) cell.tally.add(key, hit)
    }
  }

  /**
   * The figures of this window: the callers' peaks, the limits of the table (`cells`), and the recommended one with the next higher
   * peak, or the reason why there are none (`without`). `keys` has the callers' keys by their numbers. If the user has interrupted the
   * program (`isWhole` is false), limits have no figures, as these would be of some callers only. A peak that no limit admits is null.
   */
  report(isWhole: boolean, habits: HabitsByCaller, keys: readonly string[]): WindowReport {
    const limit = this.#recommended
    const policy = limit === undefined ? undefined : entryOf(this.options, this.windowMs, limit)
    const without = this.#without ?? (isWhole ? undefined : 'interrupted')
    const sorted = [...this.#peaks].sort(([one], [other]) => one - other)
    const finiteOrNull = (peak: number): number | null => (peak === Infinity ? null : peak)
    const peaks = sorted.map(([peak, count]) => [finiteOrNull(peak), count] as const)
    const highest = this.#highest.map(({ caller, peak, calls }) => {
      return { key: keys[caller]!, peak: finiteOrNull(peak), calls }
    })
    const [nextPeak = null] = peaks[sorted.findIndex(([peak]) => peak > (limit ?? Infinity))] ?? []
    const cells = this.#shown.map((cell) => {
      const isDecided = isWhole && this.#judged.includes(cell)
      return { limit: cell.policy.limit, ...(isDecided && { figures: cell.tally.report(habits) }) }
    })
    return {
      windowMs: this.windowMs,
      ...(without && { without }),
      cells,
      peaks,
      highest,
      ...(policy && { recommended: { policy, next: nextPeak } }),
    }
  }

  /** The cell of a limit, which decides calls under it; made once. Undefined for a limit that the algorithm does not take. */
  #cellOf(limit: number): Cell | undefined {
    if (this.#cells.has(limit)) return this.#cells.get(limit)
    let cell: Cell | undefined
    try {
      cell = new Cell(makePolicy(entryOf(this.options, this.windowMs, limit)))
    } catch (error) {
      const { code = '' } = error as Partial<PolicyError>
      if (!/^(INVALID_LIMIT|CAPACITY_TOO_LARGE)$/.test(code)) throw error
    }
    this.#cells.set(limit, cell)
    return cell
  }
}

/**
 * The policy of one limit and window (milliseconds), as a policy file writes it. The option `burst` sets the capacity of an
 * algorithm that has one. An algorithm with calendar periods gets the period of as many days, such as `month` for 30.
 */
function entryOf({ algorithm, burst }: SuggestOptions, windowMs: number, limit: number): PolicyEntry {
  const optionName = burst === undefined ? undefined : capacityOption(algorithm)
  const window =
    'every' in algorithms[algorithm].options
      ? { every: PERIODS[windowMs / 86_400_000] ?? formatDuration(windowMs) }
      : { window: formatDuration(windowMs) }
  return { algorithm, limit, ...window, ...(optionName && { [optionName]: burst }) } as PolicyEntry
}

/** The periods of calendars by the days of a window. */
const PERIODS: Readonly<Record<number, string>> = {
  1: 'day',
  7: 'week',
  30: 'month',
  90: 'quarter',
  365: 'year',
}

const MOST_HIGHEST = 10

/** Memory that a caller takes beside the characters of his name: up to four slots of `Callers` are the half of it. */
const CALLER_BYTES = 120

/** Part of a window that a log has to span: a day's log lacks the second before midnight. */
const SHORTEST = 0.9
