import { CONTRACT_NUMBER } from '../values/contract.js'
import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import { warn } from './misuse.js'

/*
 * What all limiters on the way of one request decided about it, kept on the request itself: their headers have to be
 * written as one. A property costs less than a WeakMap, and a registered symbol is the same one when the ESM and the
 * CJS build of this package meet in one process. Copies of another contract do not read each other's.
 */
const COUNTED = Symbol.for(`sluice.counted.${CONTRACT_NUMBER}`)

/**
 * What one limiter decided about a request. A GraphQL request may be counted 12,000 times, so that nothing here grows with
 * the number of decisions.
 */
export interface Counted {
  readonly limiter: Limiter
  /** Whether headers may tell of it: a limiter without headers stays unseen where others have them. */
  readonly announced: boolean
  /** The decision that leaves the caller least; of equals the oldest. */
  readonly decision: Decision
}

interface Count extends Counted {
  decision: Decision
  latest: Decision
  /** The number of its latest decision, counted over all limiters. */
  turn: number
  /** What the request was counted under, for limiters that are to count it once. */
  readonly keys: string[]
}

interface CountedRequest {
  [COUNTED]?: Count[]
}

/** Adds a decision to those about `request`, and returns what each limiter decided, in the order in which they came to count. */
export function count(
  request: object,
  { limiter, decision, announced }: Counted,
  key: string,
  repeats = false,
): readonly Counted[] {
  const all = ((request as CountedRequest)[COUNTED] ??= [])
  let before: Count | undefined
  let turn = 1
  for (const other of all) {
    turn = Math.max(turn, other.turn + 1)
    if (other.limiter !== limiter) continue
    if (!repeats && other.keys.includes(key)) warn(limiter, 'COUNTED_TWICE')
    if (other.announced === announced) before = other
  }
  if (!before) {
    all.push({ limiter, announced, decision, latest: decision, turn, keys: repeats ? [] : [key] })
    return all
  }
  before.decision = tighter(before.decision, decision)
  before.latest = decision
  before.turn = turn
  if (!repeats) before.keys.push(key)
  return all
}

/** Puts a decision in the place of an earlier one about `request`, whose charge was given back. */
export function replaceDecision(request: object, before: Decision, after: Decision): void {
  for (const count of (request as CountedRequest)[COUNTED] ?? []) {
    if (count.decision === before) count.decision = after
    if (count.latest === before) count.latest = after
  }
}

/** What each limiter decided about `request` so far. */
export function countedOf(request: object): readonly Counted[] {
  return (request as CountedRequest)[COUNTED] ?? []
}

/** The latest decision about `request`, or the latest of the limiter of that name. */
export function decisionAbout(request: object, limiter?: string): Decision | undefined {
  let latest: Count | undefined
  for (const count of (request as CountedRequest)[COUNTED] ?? []) {
    const named = limiter === undefined || count.latest.limiter === limiter
    if (named && count.turn > (latest?.turn ?? 0)) latest = count
  }
  return latest?.latest
}

/** The decision that leaves the caller least: a denial, else the one with least remaining; of equals the oldest. */
export function tightest(all: readonly Counted[]): Decision {
  let least = all[0]!.decision
  for (const { decision } of all) least = tighter(least, decision)
  return least
}

/** The tightest decision of each limiter, in the order in which they came to count. */
export function tightestOfEach(all: readonly Counted[]): readonly Decision[] {
  if (all.length === 1) return [all[0]!.decision]
  const byLimiter = new Map<Limiter, Decision>()
  for (const { limiter, decision } of all) {
    const other = byLimiter.get(limiter)
    byLimiter.set(limiter, other ? tighter(other, decision) : decision)
  }
  return [...byLimiter.values()]
}

function tighter(one: Decision, other: Decision): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one
  return other.remaining < one.remaining ? other : one
}
