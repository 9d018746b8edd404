import type { Decision, Limiter } from '@sluice/core'
import { CONTRACT_NUMBER, sharedInProcess, SETTINGS } from '@sluice/core/internal'
import type { KeptHeaders, Platform } from './platform.js'
import { warn } from './setup-warnings.js'

/*
 * The decisions of all limiters about one request, kept on the request itself, because all limiters write one set of
 * headers. A property costs less than a WeakMap, except in Express. Express sets the prototype of every request, so that V8
 * takes a microsecond to add a property, and a third of one to find that there is none. Symbol and map are common to the ESM
 * and the CJS build of this package in one process; copies of another contract do not read each other's decisions.
 */
const DECISIONS = Symbol.for(`sluice.decisions.${CONTRACT_NUMBER}`)
const decisionsBeside = sharedInProcess('decisions', () => new WeakMap<object, readonly RecordedDecision[]>())

/**
 * One limiter's decision about a request. A GraphQL request may be counted 12,000 times, so nothing here grows with the
 * number of decisions.
 */
export interface RequestDecision {
  readonly limiter: Limiter
  /** Whether headers show it. A limiter with `headers: false` stays invisible beside others. */
  readonly inHeaders: boolean
  /** The limiter's most restrictive decision; among equals the oldest. */
  readonly decision: Decision
}

/** The decisions of all limiters about one request, and the headers that its response gets with its head. */
export type RequestDecisions = readonly RequestDecision[] & { kept?: KeptHeaders }

/** The headers that the response to `request` gets with its head, of a platform that keeps decisions beside requests. */
export function keptHeadersOf(request: object): KeptHeaders | undefined {
  return (decisionsBeside.get(request) as RequestDecisions | undefined)?.kept
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

/** Records the decisions of one guard with the requests that they are about. */
export class Recorder<Req> {
  readonly #limiter: Limiter
  readonly #inHeaders: boolean
  readonly #platform: RequestIdentity<Req>

  /**
   * Makes what keeps the decisions of `limiter` with the requests that they are about, so that later handlers can read them.
   * `inHeaders` says that the guard of this limiter also writes them to response headers. `platform` knows which object stands
   * for a request in its framework.
   */
  constructor(limiter: Limiter, inHeaders: boolean, platform: RequestIdentity<Req>) {
    this.#limiter = limiter
    this.#inHeaders = inHeaders
    this.#platform = platform
  }

  /**
   * Adds a decision to those about the request, and returns the decisions of all limiters. They are kept as a property of the
   * request, or in a map beside it where the platform asks for that (`place`). `keys` collects the keys under which the
   * limiter counted the request, to warn if a limit that is mounted twice counts it again. It is undefined as long as
   * there is only one key. Where one limiter may count a request many times (`repeats`, as in GraphQL), `keys` is a list
   * that stays empty: there is no warning, and nothing grows with each decision.
   */
  record(req: Req, decision: Decision): RequestDecisions {
    const platform = this.#platform
    const request = platform.identity(req)
    const place = platform.keepDecisions?.(req)
    const keys = platform.repeats?.(req) ? [] : undefined
    const limiter = this.#limiter
    const recorded = { limiter, inHeaders: this.#inHeaders, decision, latest: decision, order: 1, keys }
    const earlier = decisionsAbout(request, place)
    if (earlier !== NONE) return addFurther(earlier as RecordedDecision[], recorded)
    const first: RecordedDecision[] = [recorded]
    if (place === 'beside') decisionsBeside.set(request, first)
    else (request as CountedRequest)[DECISIONS] = first
    return first
  }

  /**
   * Marks a decision that was recorded before as the latest about its request, so that `decisionAbout` returns it. Of
   * several limits that decide together, this is the binding one: the most restrictive.
   */
  markLatest(req: Req, decision: Decision): void {
    const all = decisionsAbout(this.#platform.identity(req), this.#platform.keepDecisions?.(req))
    const recorded = (all as RecordedDecision[]).find(
      ({ limiter, inHeaders }) => limiter === this.#limiter && inHeaders === this.#inHeaders,
    )!
    recorded.latest = decision
    recorded.order = nextOrder(all as RecordedDecision[])
  }
}

type RequestIdentity<Req> = Pick<Platform<Req, never>, 'identity' | 'keepDecisions' | 'repeats'>

/**
 * Adds a further decision to `all`, the list of those about a request, and returns the list. It has one entry for each limiter,
 * with its most restrictive decision, for headers, and its latest. A limiter has two entries if one of its guards shows
 * headers and another hides them. The function warns if a limiter has counted the request twice under one key, unless
 * repetition is normal on the platform. It also warns if two limiters have the same name and store, because each then uses up
 * the allowance of the other.
 */
function addFurther(all: RecordedDecision[], recorded: RecordedDecision): RecordedDecision[] {
  const { limiter, inHeaders, decision } = recorded
  const mayRepeat = recorded.keys !== undefined // the list is then one that stays empty
  let earlier: RecordedDecision | undefined
  for (const other of all) {
    if (other.limiter !== limiter) {
      if (sharesUsage(other.limiter, limiter)) warn(limiter, 'NAME_TWICE')
      continue
    }
    const countedKeys = other.keys ?? [other.latest.key]
    if (!mayRepeat && countedKeys.includes(decision.key)) warn(limiter, 'COUNTED_TWICE')
    if (other.inHeaders === inHeaders) earlier = other
  }
  recorded.order = nextOrder(all)
  if (earlier) {
    if (!mayRepeat) (earlier.keys ??= [earlier.latest.key]).push(decision.key)
    earlier.decision = moreRestrictive(earlier.decision, decision)
    earlier.latest = decision
    earlier.order = recorded.order
  } else all.push(recorded)
  return all
}

/** The number of the next decision about a request, one above the highest `order` so far: the latest decision has the highest. */
function nextOrder(all: readonly RecordedDecision[]): number {
  return 1 + Math.max(...all.map(({ order }) => order))
}

/** Whether two limiters have one name in the same store, and so the same state: each uses up the other's allowance. */
function sharesUsage(one: Limiter, other: Limiter): boolean {
  const { store } = one[SETTINGS]
  return one.name === other.name && store !== undefined && store === other[SETTINGS].store
}

/**
 * The decisions of all limiters about `request`, in the order in which they first counted it; an empty list if there are
 * none. `place` says where the platform keeps them: in the map beside requests, or otherwise on the request itself.
 */
function decisionsAbout(request: object, place: 'on' | 'beside' | undefined): readonly RequestDecision[] {
  return (place === 'beside' ? decisionsBeside.get(request) : (request as CountedRequest)[DECISIONS]) ?? NONE
}

const NONE: readonly RequestDecision[] = []

/**
 * The latest decision about `request`, the one of the highest `order`, of any limiter or of the limiter with the given name;
 * undefined if there is none.
 */
export function decisionAbout(request: object, limiter?: string): Decision | undefined {
  let latest: RecordedDecision | undefined
  for (const recorded of decisionsBeside.get(request) ?? (request as CountedRequest)[DECISIONS] ?? []) {
    const matches = limiter === undefined || recorded.latest.limiter === limiter
    if (matches && recorded.order > (latest?.order ?? 0)) latest = recorded
  }
  return latest?.latest
}

/**
 * The decision that leaves the caller least: a denial before all allowed calls, of denials the one with the longest wait,
 * of allowed calls the one with the smallest `remaining`; among equals the oldest.
 */
export function mostRestrictive(all: readonly Pick<RequestDecision, 'decision'>[]): Decision {
  let most = all[0]!.decision
  for (let i = 1; i < all.length; i++) most = moreRestrictive(most, all[i]!.decision)
  return most
}

/**
 * One decision for each limiter, the most restrictive, in the order in which the limiters first counted the request. A
 * limiter has two entries in `all` if one guard of it shows headers and another does not.
 */
export function mostRestrictiveOfEach(all: readonly RequestDecision[]): readonly Decision[] {
  if (all.length === 1) return [all[0]!.decision]
  const byLimiter = new Map<Limiter, Decision>()
  for (const { limiter, decision } of all) {
    byLimiter.set(limiter, moreRestrictive(byLimiter.get(limiter) ?? decision, decision))
  }
  return [...byLimiter.values()]
}

/**
 * The one of two decisions that leaves the caller less: a denial before an allowed call, of two denials the one with the
 * longer wait, of two allowed calls the one with the smaller `remaining`; the first if they are equal.
 */
export function moreRestrictive(one: Decision, other: Decision): Decision {
  if (one.allowed !== other.allowed) return one.allowed ? other : one
  if (!one.allowed) return other.retryAfterMs > one.retryAfterMs ? other : one
  return other.remaining < one.remaining ? other : one
}

/**
 * The header Retry-After of a denial, in whole seconds; undefined if no wait helps. It is rounded up and at least 1: many
 * clients read 0 as "at once", and the header RateLimit, whose `t` is rounded up too, must not name a later time.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  const seconds = Math.max(1, wholeSeconds(decision.retryAfterMs))
  return Number.isFinite(seconds) ? seconds : undefined
}

/** Milliseconds as whole seconds, rounded up, so that a client that waits this long is never early. */
export function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
