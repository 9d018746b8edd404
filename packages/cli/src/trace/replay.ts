import { createLimiter, type Decision, type Limiter, memoryStore, type MemoryStore } from '@sluice/core'
import { decideTogether, copiedText } from '@sluice/core/internal'
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
  /** Called with each decision; if there are three answers, with the decisions of the first. */
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
 * Decides the calls of a log by the policies of the limiters, and reports whom they would have denied. Where the log's times are
 * too coarse for a policy, there are several answers: one for each way to lay out the calls of one unit of time; only the first
 * counts callers and passes decisions on. It pauses every 16,384 calls, when an abort of the signal ends it. If the abort has ended
 * the reading before, the calls that were read are still decided, for a tenth of a second at most.
 */
export async function replay(reading: Reading, options: LogReplayOptions): Promise<ReplayReport> {
  const callers = new Callers()
  const survey = new Survey()
  const answers = waysOf(reading, options).map((way) => new ReplayedSpread(way, reading, options))
  let isOver = false
  /**
   * Has one answer decide calls. An answer is a replay of the log with its calls laid out in one way; the first answer also counts
   * the calls and callers for the report. In a long list there are pauses, in which Ctrl-C can abort the signal. If the signal has
   * aborted at a pause, all further calls are left out.
   */
  const decide = async (answer: ReplayedSpread, calls: readonly LoggedCall[], signal = options.signal) => {
    const isFirst = answer === answers[0]
    for (const [i, call] of calls.entries()) {
      if (i % CALLS_BETWEEN_PAUSES === CALLS_BETWEEN_PAUSES - 1) {
        await new Promise((resolve) => setTimeout(resolve, 0))
        isOver ||= signal?.aborted === true
      }
      if (isOver) return
      const caller = call.keys.find((key) => key !== undefined)!
      if (isFirst) survey.add(call)
      if (isFirst) callers.numberFor(caller)
      answer.decide(call, caller, isFirst ? options.onDecision : undefined)
    }
  }
  for await (const batch of reading.batches) {
    for (const answer of answers) {
      // Copies, if there are several answers: each gives the calls other instants.
      const calls = answers.length === 1 ? batch : batch.map((call) => ({ ...call }))
      await decide(answer, answer.spread.add(calls))
    }
  }
  const signal = options.signal?.aborted ? AbortSignal.timeout(100) : options.signal
  for (const answer of answers) await decide(answer, answer.spread.end(), signal)
  const basis = survey.basis(reading, callers.size, options.signal)
  return { version: 1, command: 'replay', basis, answers: answers.map((answer) => answer.report()) }
}

/** Pauses give Ctrl-C its turn. */
const CALLS_BETWEEN_PAUSES = 2 ** 14

/**
 * The ways to lay out calls within a unit of the log's times. If the scale of each policy, the time in which a caller's calls
 * affect each other, is at least 10 units, the way matters little, and is 'evenly'; otherwise there are all three.
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
  readonly #limiters: ReplayedFile
  /** The limiters to compare with. */
  readonly #against: ReplayedFile
  readonly #changes = new Map<string, Changes & { readonly key: string }>()
  readonly #sum: Changes = { allowedToDenied: 0, deniedToAllowed: 0 }

  /**
   * Prepares to replay a log with its calls spread in one `way`, as the times of a log are coarse: `spread` lays calls out within each
   * unit of time. The calls go through the limiters of a file (`#limiters`) and through those to compare with (`#against`), each on a
   * store of its own. `scales` are the times in which calls affect each other under each policy.
   */
  constructor(
    readonly way: Way,
    reading: Reading,
    readonly options: LogReplayOptions,
  ) {
    const all = allLimiters(options)
    const policies = all.flatMap((limiter) => limiter.policies)
    const scales = policies.map((policy) => policy.algorithm.bounds.scale(policy))
    this.spread = new Spread(reading, way, Math.max(...scales))
    this.#limiters = new ReplayedFile(options.limiters, 0)
    this.#against = new ReplayedFile(all.slice(options.limiters.length), options.limiters.length)
  }

  /**
   * Decides a call of the caller `key`: it is denied if at least one limiter denies it. Counts a change, for the caller and in all,
   * if the limiters to compare with, or the logged answer, decided otherwise.
   */
  decide(call: LoggedCall, key: string, onDecision: LogReplayOptions['onDecision']): void {
    const { against } = this.options
    const isDenied = this.#limiters.decide(call, onDecision)
    const wasDenied = against === 'log' ? call.denied : this.#against.decide(call)
    if (against === undefined || isDenied === wasDenied) return
    const known = this.#changes.get(key)
    const ofCaller = known ?? { key: copiedText(key), allowedToDenied: 0, deniedToAllowed: 0 }
    for (const changes of [ofCaller, this.#sum]) changes[isDenied ? 'allowedToDenied' : 'deniedToAllowed']++
    if (!known) this.#changes.set(ofCaller.key, ofCaller)
  }

  /**
   * Returns the figures of each limiter and, if a comparison was asked for, how many decisions differ. Closes the stores of both
   * replays, so no call can be decided after it.
   */
  report(): ReplayAnswer {
    const limiters = this.#limiters.report()
    this.#against.close()
    const isCompared = this.options.against !== undefined
    return { spread: this.way, limiters, ...(isCompared && { against: this.#comparison() }) }
  }

  /** How many decisions changed, in both directions: in all, and for the five callers with most changes. */
  #comparison(): Comparison {
    const size = ({ allowedToDenied, deniedToAllowed }: Changes): number => allowedToDenied + deniedToAllowed
    const byCaller = [...this.#changes.values()].sort((one, other) => size(other) - size(one))
    return { ...this.#sum, callers: byCaller.slice(0, 5) }
  }
}

/**
 * The limiters of one file, on a clock that stands at each call's instant. They decide a call together, as the limits of an
 * adapter do: it is charged under all that count it, or under none.
 */
class ReplayedFile {
  readonly #store: MemoryStore
  readonly #replayers: readonly Replayer[]
  #now = 0

  /**
   * Makes the limiters of one file in a memory store, whose time (`#now`) is that of the log, and a replayer for each. A call has a key
   * for each limiter of both files; those of these limiters begin at the index `first`.
   */
  constructor(limiters: readonly ReadLimiter[], first: number) {
    const memory = memoryStore({ maxKeys: 2 ** 23, clock: () => this.#now }) // the largest that is allowed
    // Otherwise limiters warn that the store forgets with its process, as it should here.
    this.#store = Object.assign(memory, { forgets: false })
    this.#replayers = limiters.map((limiter, i) => new Replayer(limiter, first + i, this.#store))
  }

  /** Decides a call at its logged time, by the limiters that count it together. Returns whether at least one of them denies it. */
  decide(call: LoggedCall, onDecision?: LogReplayOptions['onDecision']): boolean {
    this.#now = call.at
    const counting = this.#replayers.filter(({ index }) => call.keys[index] !== undefined)
    if (counting.length === 0) return false
    const parts = counting.map(({ limiter, index }) => ({ limiter, key: call.keys[index]!, cost: call.cost }))
    const decisions = decideTogether(parts, (all) => all) as readonly Decision[]
    for (const [i, replayer] of counting.entries()) replayer.add(call, decisions[i]!, onDecision)
    return decisions.some(({ allowed }) => !allowed)
  }

  /** Returns the figures of each limiter. Closes the store, so no call can be decided after it. */
  report(): readonly LimiterReport[] {
    this.close()
    return this.#replayers.map((replayer) => replayer.report())
  }

  /** Closes the store, which would go on removing expired keys otherwise. */
  close(): void {
    Promise.resolve(this.#store.close()).catch(() => {})
  }
}

/** The counts of one limiter. */
class Replayer {
  readonly limiter: Limiter
  /** Callers who were denied. */
  readonly #hits = new Map<string, Hit>()
  readonly #policies: Record<string, number> = Object.create(null) // for any name, such as `constructor`
  readonly #hours: Record<string, number> = {}
  #calls = 0

  /**
   * Makes a limiter in `store`, to replay the calls of a log. Of the keys of a call, one for each limiter, this limiter's is
   * number `index`.
   */
  constructor(
    { name, policies }: ReadLimiter,
    readonly index: number,
    store: MemoryStore,
  ) {
    this.limiter = createLimiter({ name, policies, store })
  }

  /** Counts the decision about a call, and reports it to `onDecision`. */
  add(call: LoggedCall, decision: Decision, onDecision: LogReplayOptions['onDecision']): void {
    const key = call.keys[this.index]!
    this.#calls++
    onDecision?.(timeOf(call.at)!, this.limiter.name, { ...call, keys: [key] }, decision)
    if (!decision.allowed) this.#addDenial(key, call.at, decision)
    else if (this.#hits.size > 0) this.#hits.get(key)?.addAllowed()
  }

  /**
   * Counts a denial at the instant `at` in microseconds: for its caller, for its hour (UTC) and for the policy that
   * denied it. The caller's `Hit` also measures how long he was locked out.
   */
  #addDenial(key: string, at: number, { policy, retryAfterMs }: Decision): void {
    const hit = this.#hits.get(key) ?? new Hit()
    if (hit.denied === 0) this.#hits.set(copiedText(key), hit)
    hit.addDenial(at, at + retryAfterMs * 1000)
    const hour = timeOf(at)!.slice(0, 13)
    this.#policies[policy] = (this.#policies[policy] ?? 0) + 1
    this.#hours[hour] = (this.#hours[hour] ?? 0) + 1
  }

  /** The figures of this limiter: its calls and denials, by policy and by hour, and the callers with most. */
  report(): LimiterReport {
    const tally = new Tally()
    for (const [key, hit] of this.#hits) tally.add(key, hit)
    const counts = { policies: this.#policies, hours: this.#hours }
    return { name: this.limiter.name, calls: this.#calls, ...tally.report(), ...counts }
  }
}
