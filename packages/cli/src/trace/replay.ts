import { createLimiter, type Decision, type Limiter, memoryStore, type MemoryStore } from '@sluice/core'
import { type ReadLimiter, scaleOf } from '@sluice/policies'
import type { Call } from '../logs/calls.js'
import type { Reading } from '../logs/read-logs.js'
import { Spread, type Way } from '../logs/spread.js'
import { type Basis, LEAST_UNITS, Survey, timeOf } from './basis.js'
import { Callers } from './callers.js'
import { LockOut, lockOutMs } from './lock-out.js'
import { worst } from './worst.js'

export interface ReplayOptions {
  /** The selectors of the reading are those of these limiters, in the same order. */
  readonly limiters: readonly ReadLimiter[]
  /** Limiters to compare with, whose selectors follow, or `'log'`: the calls that were answered 429. */
  readonly against?: readonly ReadLimiter[] | 'log' | undefined
  /** Called with each decision; of three answers those of the first. */
  readonly onDecision?: ((time: string, limiter: string, call: Call, decision: Decision) => void) | undefined
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

export interface LimiterReport {
  readonly name: string
  readonly calls: number
  readonly denied: number
  readonly callersHit: number
  /** In milliseconds; null: a call never passes. */
  readonly longestLockOutMs: number | null
  /** Denials by the name of the policy that made the call wait longest. */
  readonly policies: Readonly<Record<string, number>>
  /** Denials by the hour in which they were, in UTC: `2025-10-10T13`. */
  readonly hours: Readonly<Record<string, number>>
  /** The callers with most denials. */
  readonly worst: readonly HitCaller[]
}

export interface HitCaller {
  readonly key: string
  readonly denied: number
  /** The first denial. */
  readonly first: string
  readonly longestLockOutMs: number | null
}

/** What becomes of calls when the limiters replace others. */
export interface Comparison {
  readonly allowedToDenied: number
  readonly deniedToAllowed: number
  /** The callers with most changes. */
  readonly callers: readonly ChangedCaller[]
}

export interface ChangedCaller {
  readonly key: string
  readonly allowedToDenied: number
  readonly deniedToAllowed: number
}

/** The decisions that limiters would have made about the calls of a log. */
export async function replay(reading: Reading, options: ReplayOptions): Promise<ReplayReport> {
  const callers = new Callers()
  const survey = new Survey()
  const answers = waysOf(reading, options).map((way) => new Answer(way, reading, options, callers))
  const take = (answer: Answer, calls: readonly Call[]): void => {
    const isFirst = answer === answers[0]
    for (const call of calls) {
      const caller = callers.numberOf(call.keys.find((key) => key !== undefined)!)
      if (isFirst) survey.add(call)
      answer.take(call, caller, isFirst ? options.onDecision : undefined)
    }
  }
  for await (const batch of reading.batches) {
    for (const answer of answers) {
      const own = answers.length === 1 ? batch : batch.map((call) => ({ ...call })) // each gives them times of its own
      take(answer, answer.spread.add(own))
    }
  }
  for (const answer of answers) take(answer, answer.spread.end())
  const basis = survey.basis(reading, callers.size, options.signal)
  return { version: 1, command: 'replay', basis, answers: answers.map((answer) => answer.report(callers)) }
}

/** One way, unless the log is too coarse for one of the policies. */
function waysOf({ resolution }: Reading, options: ReplayOptions): readonly Way[] {
  const least = LEAST_UNITS * resolution
  const isCoarse = allLimiters(options).some(({ policies }) =>
    policies.some((policy) => scaleOf(policy) < least),
  )
  return isCoarse ? ['evenly', 'start', 'alternating'] : ['evenly']
}

function allLimiters({ limiters, against }: ReplayOptions): readonly ReadLimiter[] {
  return against === undefined || against === 'log' ? limiters : [...limiters, ...against]
}

/** All limiters under one way to spread calls. */
class Answer {
  readonly spread: Spread
  readonly #way: Way
  readonly #against: ReplayOptions['against']
  readonly #limiters: readonly Replayer[]
  /** The limiters to compare with. */
  readonly #others: readonly Replayer[]
  readonly #changes = new Map<number, { toDenied: number; toAllowed: number }>()

  constructor(way: Way, reading: Reading, options: ReplayOptions, callers: Callers) {
    const all = allLimiters(options)
    const replayers = all.map((limiter, index) => new Replayer(limiter, index, callers))
    const scale = Math.max(...all.flatMap(({ policies }) => policies.map(scaleOf)))
    this.spread = new Spread(reading, way, scale)
    this.#way = way
    this.#against = options.against
    this.#limiters = replayers.slice(0, options.limiters.length)
    this.#others = replayers.slice(options.limiters.length)
  }

  take(call: Call, caller: number, onDecision: ReplayOptions['onDecision']): void {
    let isDenied = false
    for (const limiter of this.#limiters) if (limiter.denies(call, onDecision)) isDenied = true
    if (this.#against === undefined) return
    let wasDenied = this.#against === 'log' && call.denied
    for (const limiter of this.#others) if (limiter.denies(call)) wasDenied = true
    if (isDenied === wasDenied) return
    const change = this.#changes.get(caller) ?? { toDenied: 0, toAllowed: 0 }
    change[isDenied ? 'toDenied' : 'toAllowed']++
    this.#changes.set(caller, change)
  }

  report(callers: Callers): ReplayAnswer {
    const limiters = this.#limiters.map((limiter) => limiter.report())
    for (const limiter of this.#others) limiter.close()
    const answer = { spread: this.#way, limiters }
    return this.#against === undefined ? answer : { ...answer, against: this.#comparison(callers) }
  }

  #comparison(callers: Callers): Comparison {
    let [allowedToDenied, deniedToAllowed] = [0, 0]
    for (const { toDenied, toAllowed } of this.#changes.values()) {
      allowedToDenied += toDenied
      deniedToAllowed += toAllowed
    }
    const all = [...this.#changes].map(([caller, { toDenied, toAllowed }]) => ({
      caller,
      denied: toDenied + toAllowed,
    }))
    const shown = callers.named(worst(all).map(({ caller }) => ({ caller, ...this.#changes.get(caller)! })))
    const changed = shown.map(({ key, toDenied, toAllowed }): ChangedCaller => {
      return { key, allowedToDenied: toDenied, deniedToAllowed: toAllowed }
    })
    return { allowedToDenied, deniedToAllowed, callers: changed }
  }
}

/** One limiter, on a clock that stands at each call's instant. */
class Replayer {
  readonly #name: string
  readonly #limiter: Limiter
  readonly #store: MemoryStore
  readonly #index: number
  readonly #callers: Callers
  /** Callers who were denied. */
  readonly #hits = new Map<number, { denied: number; readonly first: number; readonly lockOut: LockOut }>()
  readonly #policies: Record<string, number> = {}
  readonly #hours: Record<string, number> = {}
  #now = 0
  #calls = 0
  #denied = 0

  constructor({ name, policies }: ReadLimiter, index: number, callers: Callers) {
    this.#name = name
    this.#index = index
    this.#callers = callers
    this.#store = memoryStore({ maxKeys: MOST_KEYS, clock: () => this.#now })
    this.#limiter = createLimiter({ name, policies, store: this.#store })
  }

  /** Decides one call. A call that the limiter does not count is not denied. */
  denies(call: Call, onDecision?: ReplayOptions['onDecision']): boolean {
    const key = call.keys[this.#index]
    if (key === undefined) return false
    this.#now = call.at
    this.#calls++
    const decision = this.#limiter.decide(key, call.cost === 1 ? undefined : { cost: call.cost }) as Decision
    onDecision?.(timeOf(call.at)!, this.#name, { ...call, keys: [key] }, decision)
    if (!decision.allowed) this.#count(key, call.at, decision)
    else if (this.#hits.size > 0) this.#hits.get(this.#callers.numberOf(key))?.lockOut.allowed()
    return !decision.allowed
  }

  #count(key: string, at: number, { policy, retryAfterMs }: Decision): void {
    const caller = this.#callers.numberOf(key)
    const hit = this.#hits.get(caller) ?? { denied: 0, first: at, lockOut: new LockOut() }
    this.#hits.set(caller, hit)
    hit.denied++
    hit.lockOut.denied(at, at + retryAfterMs * 1000)
    const hour = timeOf(at)!.slice(0, 13)
    this.#policies[policy] = (this.#policies[policy] ?? 0) + 1
    this.#hours[hour] = (this.#hours[hour] ?? 0) + 1
    this.#denied++
  }

  report(): LimiterReport {
    this.close()
    const hits = [...this.#hits].map(([caller, { denied, first, lockOut }]) => {
      return { caller, denied, first: timeOf(first)!, longest: lockOut.longest }
    })
    const longest = hits.reduce((most, hit) => Math.max(most, hit.longest), 0)
    return {
      name: this.#name,
      calls: this.#calls,
      denied: this.#denied,
      callersHit: hits.length,
      longestLockOutMs: lockOutMs(longest),
      policies: this.#policies,
      hours: this.#hours,
      worst: this.#callers
        .named(worst(hits))
        .map(({ longest: us, ...hit }) => ({ ...hit, longestLockOutMs: lockOutMs(us) })),
    }
  }

  close(): void {
    void this.#limiter.close()
    void this.#store.close()
  }
}

/** The most that a memory store takes. */
const MOST_KEYS = 2 ** 23
