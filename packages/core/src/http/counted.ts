import type { Decision } from '../decision.js'
import type { Limiter } from '../limiter.js'
import { warn } from './misuse.js'

/*
 * What all limiters on the way of one request decided about it, kept on the request itself: their headers have to be
 * written as one. A property costs less than a WeakMap, and a registered symbol is the same one when the ESM and the
 * CJS build of this package meet in one process.
 */
const COUNTED = Symbol.for('sluice.counted')

/** One limiter has counted the request. */
export interface Counted {
  readonly limiter: Limiter
  readonly key: string
  readonly decision: Decision
  /** Whether headers may tell of it: a limiter without headers stays unseen where others have them. */
  readonly announced: boolean
}

interface CountedRequest {
  [COUNTED]?: Counted[]
}

/** Adds a decision to those about `request`, and returns all of them, oldest first. */
export function count(request: object, counted: Counted, repeats = false): readonly Counted[] {
  const { limiter, key } = counted
  const all = (request as CountedRequest)[COUNTED]
  if (!all) return ((request as CountedRequest)[COUNTED] = [counted])
  const again = !repeats && all.some((other) => other.limiter === limiter && other.key === key)
  if (again) warn(limiter, 'COUNTED_TWICE')
  all.push(counted)
  return all
}

/** The latest decision about `request`, or the latest of the limiter of that name. */
export function decisionAbout(request: object, limiter?: string): Decision | undefined {
  const all = (request as CountedRequest)[COUNTED]
  return all?.findLast(({ decision }) => limiter === undefined || decision.limiter === limiter)?.decision
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
