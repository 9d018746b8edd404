import { createLimiter, type Decision, type Limiter, memoryStore, type MemoryStore } from '@sluice/core'
import { ownText } from '@sluice/core/internal'
import type { ReadLimiter } from '@sluice/policies'
import type { LoggedCall } from '../logs/calls.js'
import type { Reading } from '../logs/read-logs.js'
import { Spread, type Way } from '../logs/spread.js'
import { type Basis, LEAST_UNITS, Survey, timeOf } from './basis.js'
import { Callers } from './callers.js'
import { type Figures, Hit, Tally } from './tally.js'

export interface LogReplayOptions {
  /** The selectors of the reading are those of these limiters, in the same order. */
  readonly limiters: readonly ReadLimiter[]
  /** Limiters to compare with, whose selectors follow, or `'log'`: the calls that were answered 429. */
  readonly against?: readonly ReadLimiter[] | 'log' | undefined
  /** Called with each decision; of three answers those of the first. */
  readonly onDecision?:
    ((time: string, limiter: string, call: LoggedCall, decision: Decision) => void) | undefined
  /** Ends deciding. Where it has ended the reading already, what was read is decided, for a tenth of a second at most. */
  readonly signal?: AbortSignal | undefined
}

export interface ReplayReport {
  readonly version: 1
  readonly command: 'replay'
  readonly basis: Basis
  /** One answer; three if the log is too coarse for a policy. */
  readonly answers: readonly ReplayAnswer[]
}

export interface ReplayAnswer {
  /** Where calls are taken to lie within the unit of the log's times. */
  readonly spread: Way
  readonly limiters: readonly LimiterReport[]
  readonly against?: Comparison
}

export interface LimiterReport extends Figures {
  readonly name: string
  readonly calls: number
  /** Denials by the name of the policy that made the call wait longest. */
  readonly policies: Readonly<Record<string, number>>
  /** Denials by the hour in which they were, in UTC: `2025-10-10T13`. */
  readonly hours: Readonly<Record<string, number>>
}

/** The outcome of calls when the limiters replace others. */
export interface Comparison extends Readonly<Changes> {
  /** The callers with most changes. */
  readonly callers: readonly (Readonly<Changes> & { readonly key: string })[]
}

export interface Changes {
  allowedToDenied: number
  deniedToAllowed: number
}

/**
 * Decides the calls of a log by the policies of the limiters, and reports whom they would have denied. Where the log's
 * times are too coarse for a policy, there are several answers: one for each way to lay out the calls of one unit of
 * time; only the first counts callers and passes decisions on. It pauses every 16,384 calls, when an abort of the signal
 * ends it. If the abort has ended the reading before, the calls that were read are still decided, for a tenth of a second
 * at most.
 */
export async function replay(reading: Reading, options: LogReplayOptions): Promise<ReplayReport> {
  const callers = new Callers()
  const survey = new Survey()
  const answers = waysOf(reading, options).map((way) => new ReplayedSpread(way, reading, options))
  let isOver = false
  /**
   * Has one answer decide calls. An answer is a replay of the log with its calls laid out in one way; the first of them
   * also counts the calls and callers for the report. In a long list there are pauses, in which Ctrl-C can abort the
   * signal. If a pause finds it aborted, all further calls are left out.
   */
  const take = async (answer: ReplayedSpread, calls: readonly LoggedCall[], signal = options.signal) => {
    const isFirst = answer === answers[0]
    for (const [i, call] of calls.entries()) {
      if (i % CALLS_BETWEEN_PAUSES === CALLS_BETWEEN_PAUSES - 1) {
        await new Promise((resolve) => setTimeout(resolve, 0))
        isOver ||= signal?.aborted === true
      }
      if (isOver) return
      const key = call.keys.find((each) => each !== undefined)!
      if (isFirst) survey.add(call)
      if (isFirst) callers.numberFor(key)
      answer.take(call, key, isFirst ? options.onDecision : undefined)
    }
  }
  for await (const batch of reading.batches) {
    for (const answer of answers)
      // each gives the calls times of its own
      await take(answer, answer.spread.add(answers.length === 1 ? batch : batch.map((call) => ({ ...call }))))
  }
  const signal = options.signal?.aborted ? AbortSignal.timeout(100) : options.signal
  for (const answer of answers) await take(answer, answer.spread.end(), signal)
  const basis = survey.basis(reading, callers.size, options.signal)
  return { version: 1, command: 'replay', basis, answers: answers.map((answer) => answer.report()) }
}

/** Pauses give Ctrl-C its turn. */
const CALLS_BETWEEN_PAUSES = 2 ** 14

/**
 * The ways to lay out calls within a unit of the log's times: evenly where each policy's scale, the time in which a caller's
 * calls affect each other, has at least 10 units, so that it matters little; otherwise all three.
 */
function waysOf({ resolution }: Reading, options: LogReplayOptions): readonly Way[] {
  const policies = allLimiters(options).flatMap((limiter) => limiter.policies)
  const isCoarse = policies.some((policy) => policy.algorithm.bounds.scale(policy) < LEAST_UNITS * resolution)
  return isCoarse ? ['evenly', 'start', 'alternating'] : ['evenly']
}

/** The limiters to replay, and behind them those to compare with, if these are limiters and not the log's own answers. */
const allLimiters = ({ limiters, against }: LogReplayOptions): readonly ReadLimiter[] =>
  against === undefined || against === 'log' ? limiters : [...limiters, ...against]

/**
 * All limiters under one way to lay out the calls of a unit of time: a log with whole seconds does not say where in its
 * second each call lay.
 */
class ReplayedSpread {
  readonly spread: Spread
  readonly #limiters: readonly Replayer[]
  /** The limiters to compare with. */
  readonly #others: readonly Replayer[]
  readonly #changes = new Map<string, Changes & { readonly key: string }>()
  readonly #sum: Changes = { allowedToDenied: 0, deniedToAllowed: 0 }

  /** Makes a replay of each limiter, and of each to compare with, on a store of its own. */
  constructor(
    readonly way: Way,
    reading: Reading,
    readonly options: LogReplayOptions,
  ) {
    const all = allLimiters(options)
    const replayers = all.map((limiter, index) => new Replayer(limiter, index))
    this.spread = new Spread(
      reading,
      way,
      Math.max(
        ...all.flatMap(({ policies }) => policies.map((policy) => policy.algorithm.bounds.scale(policy))),
      ),
    )
    this.#limiters = replayers.slice(0, options.limiters.length)
    this.#others = replayers.slice(options.limiters.length)
  }

  /**
   * Has all limiters decide a call of the caller `key`, which is denied if at least one of them denies it, and counts a change
   * where those to compare with, or the logged answer, differ.
   */
  take(call: LoggedCall, key: string, onDecision: LogReplayOptions['onDecision']): void {
    const { against } = this.options
    let isDenied = false
    for (const limiter of this.#limiters) if (limiter.denies(call, onDecision)) isDenied = true
    let wasDenied = against === 'log' && call.denied
    for (const limiter of this.#others) if (limiter.denies(call)) wasDenied = true
    if (against === undefined || isDenied === wasDenied) return
    const known = this.#changes.get(key)
    const change = known ?? { key: ownText(key), allowedToDenied: 0, deniedToAllowed: 0 }
    for (const each of [change, this.#sum]) each[isDenied ? 'allowedToDenied' : 'deniedToAllowed']++
    if (!known) this.#changes.set(change.key, change)
  }

  /**
   * The figures of each limiter, and if a comparison was asked for, how many decisions differ from it. Closes the stores of all
   * replays, so no call can be taken after it.
   */
  report(): ReplayAnswer {
    const limiters = this.#limiters.map((limiter) => limiter.report())
    for (const limiter of this.#others) limiter.report()
    const isCompared = this.options.against !== undefined
    return { spread: this.way, limiters, ...(isCompared && { against: this.#comparison() }) }
  }

  /** How many decisions differ from those compared with, in both directions: in all, and for the five callers with most. */
  #comparison(): Comparison {
    const size = ({ allowedToDenied, deniedToAllowed }: Changes): number => allowedToDenied + deniedToAllowed
    const most = [...this.#changes.values()].sort((one, other) => size(other) - size(one)).slice(0, 5)
    return { ...this.#sum, callers: most }
  }
}

/** One limiter, on a clock that stands at each call's instant. */
class Replayer {
  readonly #limiter: Limiter
  readonly #store: MemoryStore
  /** Callers who were denied. */
  readonly #hits = new Map<string, Hit>()
  readonly #policies: Record<string, number> = Object.create(null) // for any name, such as `constructor`
  readonly #hours: Record<string, number> = {}
  #now = 0
  #calls = 0

  /**
   * Makes a limiter in memory whose clock stands at the logged time of each call. A call has a key for each limiter that is
   * replayed; this limiter's is number `index` of them.
   */
  constructor(
    { name, policies }: ReadLimiter,
    readonly index: number,
  ) {
    this.#store = memoryStore({ maxKeys: 2 ** 23, clock: () => this.#now }) // the largest that is allowed
    // It is to forget its state with the process, so it warns of none.
    this.#limiter = createLimiter({ name, policies, store: Object.assign(this.#store, { forgets: false }) })
  }

  /** Whether a call is denied, at its logged time. One without a key for this limiter is not counted. */
  denies(call: LoggedCall, onDecision?: LogReplayOptions['onDecision']): boolean {
    const key = call.keys[this.index]
    if (key === undefined) return false
    this.#now = call.at
    this.#calls++
    const decision = this.#limiter.decide(key, call.cost === 1 ? undefined : { cost: call.cost }) as Decision
    onDecision?.(timeOf(call.at)!, this.#limiter.name, { ...call, keys: [key] }, decision)
    if (!decision.allowed) this.#count(key, call.at, decision)
    else if (this.#hits.size > 0) this.#hits.get(key)?.allowed()
    return !decision.allowed
  }

  /**
   * Counts a denial at the instant `at` in microseconds: for its caller, for its hour (UTC) and for the policy that
   * denied it. The caller's `Hit` also measures how long he was locked out.
   */
  #count(key: string, at: number, { policy, retryAfterMs }: Decision): void {
    const hit = this.#hits.get(key) ?? new Hit()
    if (hit.denied === 0) this.#hits.set(ownText(key), hit)
    hit.add(at, at + retryAfterMs * 1000)
    const hour = timeOf(at)!.slice(0, 13)
    this.#policies[policy] = (this.#policies[policy] ?? 0) + 1
    this.#hours[hour] = (this.#hours[hour] ?? 0) + 1
  }

  /**
   * The figures of this limiter: its calls and denials, by policy and by hour, and the callers with most. Closes the store, which
   * would go on removing expired keys otherwise.
   */
  report(): LimiterReport {
    Promise.resolve(this.#store.close()).catch(() => {})
    const tally = new Tally()
    for (const [key, hit] of this.#hits) tally.add(key, hit)
    const counts = { policies: this.#policies, hours: this.#hours }
    return { name: this.#limiter.name, calls: this.#calls, ...tally.report(), ...counts }
  }
}
