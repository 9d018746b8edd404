import {
  type Decision,
  type Limiter,
  type PartOptions,
  type PermitPart,
  PolicyError,
  type Semaphore,
} from '@sluice/core'
import { decideTogether, permitsFirst, prepareTogether } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { type Access, accessChooser } from './access.js'
import { settleByOutcome } from './charge-by-outcome.js'
import { keepAddresses } from './caller.js'
import { mostRestrictive, type RequestDecisions } from './decisions.js'
import { type Denied, ifHungUp } from './denial.js'
import { getOrMake } from './get-or-make.js'
import { RequestGuard } from './guard.js'
import { type PartLimitOptions, type RequestLimitOptions, USAGE } from './options.js'
import { chain, type Platform, whenSent } from './platform.js'

/*
 * A request under several limits, in one decision: it is charged under all of them, or under none. Guards one after the other
 * are independent: what the first has charged stays charged when the second denies.
 */

/** Decides a request under these keys and permits by `ask`, or returns the answer to one that was decided before. */
export type AskAboutSeveral<Req, Res> = (
  req: Req,
  parts: readonly PartOptions[],
  ask: () => MaybePromise<Denied | undefined>,
  res: Res,
  permits: readonly PermitPart[],
) => MaybePromise<Denied | undefined>

/** One limit of several. */
export interface OneLimit<Req, Res> {
  readonly guard: RequestGuard<Req, Res>
  /** The options of the guard that it belongs to: who is counted at all, and how requests are answered. */
  readonly frame: RequestLimitOptions<Req, Res>
  /** Of a limit that takes a permit; its guard then goes by the limiter of another. */
  readonly semaphore: Semaphore | undefined
}

/**
 * Makes one of several limits that are decided together, of its own options (`part`) and those of the guard that it
 * belongs to (`frame`). Its guard finds the key, the cost and the policies of a request as usual, but its step `ask` adds
 * them to a list and asks nothing: all limits are asked in one call later. That list is passed through the guard in place
 * of the response, which these steps do not use. The frame's `skip`, `allow` and `deny` are left out, because they are
 * asked once for all of its limits.
 * @throws {PolicyError} INVALID_OPTION for a semaphore on a platform whose responses have no end.
 */
export function oneLimit<Req, Res>(
  part: PartLimitOptions<Req, Res>,
  frame: RequestLimitOptions<Req, Res>,
  limiter: Limiter,
  platform: Platform<Req, Res>,
): OneLimit<Req, Res> {
  const { allow: _allow, deny: _deny, skip: _skip, cost, ...common } = frame
  const { semaphore } = part
  if (semaphore && !platform.ended) {
    throw new PolicyError('INVALID_OPTION', 'a semaphore needs a response whose end releases its permit')
  }
  // A permit has no cost. A request for usage costs nothing, whatever others cost.
  const noCost = USAGE in frame && { cost: () => 0 }
  const options = { ...common, ...(cost && !semaphore && { cost }), ...part, ...noCost }
  const guard: RequestGuard<Req, Res> = new RequestGuard(options, limiter, platform, (steps) => ({
    limiter,
    count: steps.count.bind(steps),
    deny: steps.deny.bind(steps),
    /** Notes the key, cost and policies of a request in `list`, which comes in the place of a response. */
    ask: (req, list, key, cost) =>
      chain(guard.choosePolicies?.(req), (policies) => {
        const { keys, permits } = list as unknown as Counts<Req, Res>
        const enforce = frame.enforce !== false
        if (semaphore) permits.push({ limit, call: { semaphore, key, enforce } })
        else keys.push({ limit, call: { limiter, key, cost, ...(policies && { policies }) } })
        return undefined
      }),
  }))
  const limit = { guard, frame, semaphore }
  return limit
}

/** Returns the limits of a frame that are in force: 1 to 16, the same list until they change. */
export type LimitsInForce<Req, Res> = () => readonly OneLimit<Req, Res>[]

/** One of the limits under which a request is counted, with the key, cost and policies of the request under it. */
interface Counted<Req, Res> {
  readonly limit: OneLimit<Req, Res>
  readonly call: PartOptions
}

/** The limits under which a request is counted, and beside them those whose permits it takes. */
interface Counts<Req, Res> {
  readonly keys: Counted<Req, Res>[]
  readonly permits: {
    readonly limit: OneLimit<Req, Res>
    /** In shadow mode, which does not `enforce`, a request goes on without its permit. */
    readonly call: PermitPart & { readonly enforce: boolean }
  }[]
}

/** One of the limits under which a request is counted, and the decision about it. */
interface Decided<Req, Res> {
  readonly limit: OneLimit<Req, Res>
  readonly decision: Decision
}

/** The limits of one frame, and whether a request is counted under them. */
interface Framed<Req, Res> {
  readonly limits: LimitsInForce<Req, Res>
  readonly chooseAccess: ((req: Req) => MaybePromise<Access>) | undefined
}

export class SeveralGuard<Req, Res> {
  readonly #frames: readonly Framed<Req, Res>[]
  /** Whether all requests are answered, counted or not. */
  readonly #isUsage: boolean

  /**
   * Groups the limits by their frame, the options of the guard that they come from: its `skip`, `allow` and `deny` are
   * asked once for all of them. `limits` stay as they are; the functions `inForce` return those of one frame each, and are
   * called at each request. `around`, if it is given, is called in place of the decision. It can make the decision, or
   * answer by an earlier one, as Nest does for the operations of one GraphQL request. The stores make ready for all limits
   * together, as each request may be counted under others of them.
   */
  constructor(
    limits: readonly OneLimit<Req, Res>[],
    private readonly platform: Platform<Req, Res>,
    private readonly around: AskAboutSeveral<Req, Res> | undefined,
    inForce: readonly LimitsInForce<Req, Res>[] = [],
  ) {
    const fixed = [...new Set(limits.map(({ frame }) => frame))].map((frame) => {
      const own = limits.filter((limit) => limit.frame === frame)
      return () => own
    })
    this.#frames = [...fixed, ...inForce].map((limitsOfFrame) => {
      const [{ frame, guard }] = limitsOfFrame() as [OneLimit<Req, Res>]
      return { limits: limitsOfFrame, chooseAccess: accessChooser(frame, guard.source) }
    })
    const all = this.#frames.flatMap((framed) => framed.limits())
    this.#isUsage = all.some(({ frame }) => USAGE in frame)
    prepareTogether(all.filter(({ semaphore }) => !semaphore).map(({ guard }) => guard.limiter))
  }

  /**
   * Checks a request: finds its key and cost under each limit, then has all limits decide together. Returns the
   * answer to a request that was denied, or whose caller has hung up; undefined if it may go on. Before it waits, it
   * keeps the caller's address, which a closed connection does not have any more.
   */
  check(req: Req, res: Res): MaybePromise<Denied | undefined> {
    const counted: Counts<Req, Res> = { keys: [], permits: [] }
    let denied
    try {
      denied = this.#enter(req, res, counted, 0)
    } catch (error) {
      return ifHungUp(error)
    }
    if (!denied || 'answer' in denied) return denied ?? this.#decide(req, res, counted)
    keepAddresses(req, this.platform)
    return denied.then((later) => later ?? this.#decide(req, res, counted), ifHungUp)
  }

  /**
   * Goes through the frames (the limits of one guard each) from number `next` on, and collects in `counted` the limits
   * under which the request is counted. The options `skip`, `allow` and `deny` of a frame decide for its limits: they are
   * added with the request's key and cost, left out, or the request is answered 403. Returns the answer to a request that
   * was answered so, or whose caller has hung up; otherwise undefined.
   */
  #enter(req: Req, res: Res, counted: Counts<Req, Res>, next: number): MaybePromise<Denied | undefined> {
    const framed = this.#frames[next]
    if (!framed) return undefined
    return chain(framed.chooseAccess?.(req) ?? 'count', (access) => {
      if (access === 'forbid') return framed.limits()[0]!.guard.respond.forbid(req, res)
      const limits = access === 'count' ? framed.limits() : []
      return chain(
        identifyUnder(req, limits, counted, 0),
        (denied) => denied ?? this.#enter(req, res, counted, next + 1),
      )
    })
  }

  /**
   * Charges a request by one decision under all limits that count it (`keys`, and `permits` that it takes), or under none.
   * Returns the answer to a request that was denied, and undefined for one that may pass, as it does when no limit counts it.
   * If the adapter gave a function `around`, that is called with `ask`, which makes the decision. It may return an earlier
   * answer without calling `ask`, as Nest's adapter does for later operations of a GraphQL request once one was denied.
   */
  #decide(req: Req, res: Res, { keys, permits }: Counts<Req, Res>): MaybePromise<Denied | undefined> {
    if (keys.length + permits.length === 0 && !this.#isUsage) return undefined
    const calls = keys.map(({ call }) => call)
    const decide = () => (calls.length === 0 ? [] : decideTogether(calls, (decisions) => decisions))
    const ask = (): MaybePromise<Denied | undefined> =>
      permits.length > 0
        ? this.#decideWithPermits(req, res, keys, permits, decide)
        : // Not by a callback of `decideTogether`, which may run in the AsyncLocalStorage context of another request.
          chain(decide(), (decisions) => this.#obey(req, res, keys, decisions))
    if (!this.around) return ask()
    return this.around(
      req,
      calls,
      ask,
      res,
      permits.map(({ call }) => call),
    )
  }

  /**
   * Decides a request as `#decide` says, after it has taken a permit of each semaphore in `permits`. Permits are released when
   * the response has ended. A request that gets no permit is answered by the limit of that semaphore, without headers, as no
   * limiter was asked. Without `keys` a request that gets its permits may pass.
   */
  async #decideWithPermits(
    req: Req,
    res: Res,
    keys: readonly Counted<Req, Res>[],
    permits: Counts<Req, Res>['permits'],
    decide: () => MaybePromise<readonly Decision[]>,
  ): Promise<Denied | undefined> {
    const ended = this.platform.ended!(req, res) // before permits are taken: a call without a response is refused
    const calls = permits.map(({ call }) => call)
    const { decisions, held } = await permitsFirst(calls, decide, (decisions, held) => ({ decisions, held }))
    ended.then(() => Promise.all(held.map((permit) => permit.release()))).catch(() => {})
    const [first] = decisions
    if (first?.reason !== 'concurrency') return first && this.#obey(req, res, keys, decisions)
    this.platform.decided?.(req, first)
    const { limit } = permits.find(({ call }) => call.semaphore.name === first.limiter)!
    return limit.guard.respond.deny(req, res, first, [])
  }

  /**
   * Obeys the decisions of all limits: records them and writes the headers of each frame. If one of them denied the
   * request, it is answered as the most restrictive limit (`binding`) answers, and each denial is reported to
   * `onExceeded`.
   */
  #obey(
    req: Req,
    res: Res,
    counted: readonly Counted<Req, Res>[],
    decisions: readonly Decision[],
  ): MaybePromise<Denied | undefined> {
    const isAllowed = decisions.every(({ allowed }) => allowed)
    // Limits that count the request under one key of one limiter share a decision, and appear once.
    const decided = counted
      .map(({ limit }, i) => ({ limit, decision: decisions[i]! }))
      .filter(({ decision }, i) => decisions.indexOf(decision) === i)
    const strictest = mostRestrictive(decided)
    const binding = decided.find(({ decision }) => decision === strictest)!
    const all = this.#record(req, decided, binding)
    const writtenFrames = new Set<object>()
    for (const { limit } of decided) {
      if (!writtenFrames.has(limit.frame)) limit.guard.writeHeaders?.(all, res)
      writtenFrames.add(limit.frame)
    }
    if (isAllowed) {
      this.#settleWhenSent(req, res, decided)
      return undefined
    }
    for (const { limit, decision } of decided) {
      if (!decision.allowed) limit.guard.reportExceeded?.(req, res, decision.key, decision)
    }
    return binding.limit.guard.respond.deny(req, res, binding.decision, all)
  }

  /** Asks each function `shouldCharge` once, when the response has been sent, whether the charges of its limits stay. */
  #settleWhenSent(req: Req, res: Res, decided: readonly Decided<Req, Res>[]): void {
    const byCallback = new Map<NonNullable<RequestLimitOptions<Req, Res>['shouldCharge']>, Decision[]>()
    for (const { limit, decision } of decided) {
      const { shouldCharge } = limit.guard.options
      if (shouldCharge) getOrMake(byCallback, shouldCharge, () => []).push(decision)
    }
    const { limiter } = decided[0]!.limit.guard
    for (const [shouldCharge, decisions] of byCallback) {
      whenSent(this.platform, req, res)
        .then(() => settleByOutcome(limiter, decisions, () => shouldCharge(req, res)))
        .catch(() => {})
    }
  }

  /**
   * Records the decisions of all limits with the request, and reports each to the platform. `binding` is the most
   * restrictive one; it comes last, so that it counts as the latest about the request. Returns the decisions of all
   * limiters about the request.
   */
  #record(req: Req, decided: readonly Decided<Req, Res>[], binding: Decided<Req, Res>): RequestDecisions {
    let all: RequestDecisions = []
    for (const each of decided) {
      all = each.limit.guard.recorder.record(req, each.decision)
      if (each !== binding) this.platform.decided?.(req, each.decision)
    }
    binding.limit.guard.recorder.markLatest(req, binding.decision)
    this.platform.decided?.(req, binding.decision)
    return all
  }
}

/**
 * Finds the key and the cost of a request under each of `limits` from number `next` on, and adds them to `counted`: each
 * limit's guard takes that list in place of the response and asks nothing. Returns the answer to a caller who has hung
 * up; undefined for all others.
 */
function identifyUnder<Req, Res>(
  req: Req,
  limits: readonly OneLimit<Req, Res>[],
  counted: Counts<Req, Res>,
  next: number,
): MaybePromise<Denied | undefined> {
  const limit = limits[next]
  if (!limit) return undefined
  return chain(
    limit.guard.check(req, counted as unknown as Res), // its steps get the list in place of the response: see oneLimit
    (denied) => denied ?? identifyUnder(req, limits, counted, next + 1),
  )
}
