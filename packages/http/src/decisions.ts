import type { Decision, Limiter } from '@sluice/core'
import { CONTRACT_NUMBER, inCommon, SETTINGS } from '@sluice/core/internal'

/*
 * The decisions of all limiters about one request, kept on the request itself, because all limiters write one set of
 * headers. A property costs less than a WeakMap, except in Express. Express sets the prototype of every request, so that V8
 * takes a microsecond to add a property, and a third of one to find that there is none. Symbol and map are common to the ESM
 * and the CJS build of this package in one process; copies of another contract do not read each other's decisions.
 */
const DECISIONS = Symbol.for(`sluice.decisions.${CONTRACT_NUMBER}`)
const decisionsBeside = inCommon('decisions', () => new WeakMap<object, readonly RecordedDecision[]>())

/** Where the decisions about a request are kept: on it as a property, or beside it in a map. */
export type KeepDecisions = 'on' | 'beside'

/** Who records decisions about requests: one guard of a limiter. */
export interface Recorder {
  readonly limiter: Limiter
  /** Whether headers show its decisions. A limiter with `headers: false` stays invisible beside others. */
  readonly inHeaders: boolean
}

/**
 * What one limiter decided about a request. A GraphQL request may be counted 12,000 times, so nothing here grows with the
 * number of decisions.
 */
export interface RequestDecision extends Recorder {
  /** The limiter's most restrictive decision; among equals the oldest. */
  readonly decision: Decision
}

interface RecordedDecision extends RequestDecision {
  decision: Decision
  latest: Decision
  /** The position of `latest` among the decisions of all limiters, from 1. */
  order: number
  /**
   * The keys that the request was counted under, none of them where requests repeat; undefined as long as the only one is
   * that of `latest`.
   */
  keys: string[] | undefined
}

interface CountedRequest {
  [DECISIONS]?: RecordedDecision[]
}

/**
 * Records a decision about `request`. `before` is what `decisionsAbout` gave; `repeats` is whether requests repeat. Returns
 * the decisions of all limiters about the request.
 */
export function record(
  request: object,
  keep: KeepDecisions,
  before: readonly RequestDecision[],
  { limiter, inHeaders }: Recorder,
  decision: Decision,
  repeats: boolean,
): readonly RequestDecision[] {
  const keys = repeats ? [] : undefined
  if (before === NONE) {
    const first: RecordedDecision[] = [{ limiter, inHeaders, decision, latest: decision, order: 1, keys }]
    if (keep === 'beside') decisionsBeside.set(request, first)
    else (request as CountedRequest)[DECISIONS] = first
    return first
  }
  const all = before as RecordedDecision[]
  const order = 1 + all.reduce((latest, other) => Math.max(latest, other.order), 0)
  const earlier = all.find((other) => other.limiter === limiter && other.inHeaders === inHeaders)
  if (!earlier) {
    all.push({ limiter, inHeaders, decision, latest: decision, order, keys })
    return all
  }
  if (!repeats) (earlier.keys ??= [earlier.latest.key]).push(decision.key)
  earlier.decision = moreRestrictive(earlier.decision, decision)
  earlier.latest = decision
  earlier.order = order
  return all
}

/** Whether a limiter has counted the request under this key already. */
export function isCounted(all: readonly RequestDecision[], limiter: Limiter, key: string): boolean {
  return (all as readonly RecordedDecision[]).some(
    ({ limiter: other, keys, latest }) =>
      other === limiter && (keys ? keys.includes(key) : latest.key === key),
  )
}

/** Whether another limiter of the same name has counted the request in the same store, so that both share their usage. */
export function sharesName(all: readonly RequestDecision[], limiter: Limiter): boolean {
  return all.some(({ limiter: other }) => {
    if (other === limiter || other.name !== limiter.name) return false
    const { store } = other[SETTINGS]
    return store !== undefined && store === limiter[SETTINGS].store
  })
}

/** Replaces an earlier decision among those about a request after its charge was given back. */
export function replaceDecision(all: readonly RequestDecision[], before: Decision, after: Decision): void {
  for (const recorded of all as readonly RecordedDecision[]) {
    if (recorded.decision === before) recorded.decision = after
    if (recorded.latest === before) recorded.latest = after
  }
}

/** What each limiter has decided about `request`, in the order in which the limiters first counted it. */
export function decisionsAbout(request: object, keep: KeepDecisions): readonly RequestDecision[] {
  return (keep === 'beside' ? decisionsBeside.get(request) : (request as CountedRequest)[DECISIONS]) ?? NONE
}

const NONE: readonly RequestDecision[] = []

/** The latest decision about `request`, or the latest of the limiter with the given name; undefined if there is none. */
export function decisionAbout(request: object, limiter?: string): Decision | undefined {
  let latest: RecordedDecision | undefined
  for (const recorded of decisionsBeside.get(request) ?? (request as CountedRequest)[DECISIONS] ?? []) {
    const matches = limiter === undefined || recorded.latest.limiter === limiter
    if (matches && recorded.order > (latest?.order ?? 0)) latest = recorded
  }
  return latest?.latest
}

/** The decision that leaves the caller least: a denial, else the smallest `remaining`; among equals the oldest. */
export function mostRestrictive(all: readonly RequestDecision[]): Decision {
  let most = all[0]!.decision
  for (let i = 1; i < all.length; i++) most = moreRestrictive(most, all[i]!.decision)
  return most
}

/** The most restrictive decision of each limiter, in the order in which the limiters first counted the request. */
export function mostRestrictiveOfEach(all: readonly RequestDecision[]): readonly Decision[] {
  if (all.length === 1) return [all[0]!.decision]
  const byLimiter = new Map<Limiter, Decision>()
  for (const { limiter, decision } of all) {
    const other = byLimiter.get(limiter)
    byLimiter.set(limiter, other ? moreRestrictive(other, decision) : decision)
  }
  return [...byLimiter.values()]
}

function moreRestrictive(one: Decision, other: Decision): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one
  return other.remaining < one.remaining ? other : one
}

/**
 * Retry-After of a denial, in seconds; undefined if no wait helps. Never 0, which many clients read as "at once", and never
 * before the `t` of a policy that denies.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  const seconds = Math.max(1, wholeSeconds(decision.retryAfterMs))
  return Number.isFinite(seconds) ? seconds : undefined
}

/** Rounded up, so that a client that waits this long is never early. */
export function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
