import type { Decision, Limiter, PartOptions, Policy } from '@sluice/core'
import { ANSWER, decideTogether } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { type Access, accessChooser } from './access.js'
import { settleByOutcome } from './charge-by-outcome.js'
import { keepAddresses } from './caller.js'
import { moreRestrictive, Recorder, type RequestDecision } from './decisions.js'
import { type Denied, ifHungUp, type Responder, responder } from './denial.js'
import { exceededReporter, type ReportExceeded } from './exceeded.js'
import { getOrMake } from './get-or-make.js'
import { RequestGuard } from './guard.js'
import { headerSetter, headerWriter, type WriteHeaders } from './headers.js'
import type { RequestLimitOptions } from './options.js'
import { chain, type Platform } from './platform.js'

/*
 * A request under several limits, in one decision: it is charged under all of them, or under none. Guards one after the other
 * are independent: what the first has charged stays charged when the second denies.
 */

/** Asks about a request under these keys, or takes the answer to one that was asked about before. */
export type AskAboutSeveral<Req> = (
  req: Req,
  parts: readonly PartOptions[],
  ask: () => MaybePromise<Denied | undefined>,
) => MaybePromise<Denied | undefined>

/** What the limits of one guard have in common: who is counted at all, and how requests are answered. */
export type PartFrame<Req, Res> = ReturnType<typeof frameOf<Req, Res>>

export function frameOf<Req, Res>(options: RequestLimitOptions<Req, Res>, platform: Platform<Req, Res>) {
  const setHeader = headerSetter(options.headerNames, platform)
  const writeHeaders: WriteHeaders<Res> | undefined = headerWriter(options, platform, setHeader)
  const respond: Responder<Req, Res> = responder(options.onDenied, platform, setHeader)
  return { options, platform, writeHeaders, respond }
}

/** One limit of several. Its own guard finds key, cost and policies of a request, and here takes note of them in place of asking. */
export class OneLimit<Req, Res> {
  readonly recorder: Recorder<Req>
  readonly reportExceeded: ReportExceeded<Req, Res> | undefined
  readonly shouldCharge: RequestLimitOptions<Req, Res>['shouldCharge']
  /** In place of a response, steps get the list to which the part of a request is added. */
  readonly guard: RequestGuard<Req, Counted<Req, Res>[]>

  constructor(
    options: RequestLimitOptions<Req, Res>,
    readonly limiter: Limiter,
    readonly frame: PartFrame<Req, Res>,
  ) {
    const { platform, writeHeaders } = frame
    const { onExceeded } = frame.options
    this.recorder = new Recorder(limiter, writeHeaders !== undefined, platform)
    this.reportExceeded = onExceeded && exceededReporter(limiter, onExceeded)
    this.shouldCharge = options.shouldCharge
    // Options and platform as of a guard whose responses are lists: it takes no step that has one.
    const [counting, onList] = [options, platform] as unknown as [
      RequestLimitOptions<Req, Counted<Req, Res>[]>,
      Platform<Req, Counted<Req, Res>[]>,
    ]
    this.guard = new RequestGuard(counting, limiter, onList, (steps) => ({
      limiter,
      count: steps.count.bind(steps),
      deny: steps.deny.bind(steps),
      ask: (req, counted, key, cost) =>
        chain(this.guard.choosePolicies?.(req), (policies) => this.#add(counted, key, cost, policies)),
    }))
  }

  #add(
    counted: Counted<Req, Res>[],
    key: string,
    cost: number,
    policies: readonly Policy[] | undefined,
  ): undefined {
    const { limiter } = this
    counted.push({ part: this, call: { limiter, key, cost, ...(policies && { policies }) } })
  }
}

/** A part of one request. */
interface Counted<Req, Res> {
  readonly part: OneLimit<Req, Res>
  readonly call: PartOptions
}

/** A part of one request, and the decision about it. */
interface Decided<Req, Res> {
  readonly part: OneLimit<Req, Res>
  readonly decision: Decision
}

/** The limits of one frame, and whether a request is counted under them. */
interface Framed<Req, Res> {
  readonly frame: PartFrame<Req, Res>
  readonly parts: readonly OneLimit<Req, Res>[]
  readonly chooseAccess: ((req: Req) => MaybePromise<Access>) | undefined
}

export class SeveralGuard<Req, Res> {
  readonly #frames: readonly Framed<Req, Res>[]

  constructor(
    parts: readonly OneLimit<Req, Res>[],
    private readonly platform: Platform<Req, Res>,
    private readonly around: AskAboutSeveral<Req> | undefined,
  ) {
    this.#frames = [...new Set(parts.map(({ frame }) => frame))].map((frame) => {
      const own = parts.filter((part) => part.frame === frame)
      return { frame, parts: own, chooseAccess: accessChooser(frame.options, own[0]!.guard.source) }
    })
  }

  check(req: Req, res: Res): MaybePromise<Denied | undefined> {
    const counted: Counted<Req, Res>[] = []
    let denied
    try {
      denied = this.#enter(req, res, counted, 0)
    } catch (error) {
      return ifHungUp(error)
    }
    if (!(denied instanceof Promise)) return denied ?? this.#decide(req, res, counted)
    keepAddresses(req, this.platform)
    return denied.then((later) => later ?? this.#decide(req, res, counted), ifHungUp)
  }

  /** Adds to `counted` the parts of the frames from `next` on. Returns the answer to a request that goes no further. */
  #enter(req: Req, res: Res, counted: Counted<Req, Res>[], next: number): MaybePromise<Denied | undefined> {
    const framed = this.#frames[next]
    if (!framed) return undefined
    return chain(framed.chooseAccess?.(req) ?? 'count', (access) => {
      if (access === 'forbid') return framed.frame.respond.forbid(req, res)
      const parts = access === 'count' ? framed.parts : []
      return chain(
        countParts(req, parts, counted, 0),
        (denied) => denied ?? this.#enter(req, res, counted, next + 1),
      )
    })
  }

  #decide(req: Req, res: Res, counted: readonly Counted<Req, Res>[]): MaybePromise<Denied | undefined> {
    if (counted.length === 0) return undefined
    const calls = counted.map(({ call }) => call)
    const ask = (): MaybePromise<Denied | undefined> =>
      decideTogether(calls, (decisions) => this.#obey(req, res, counted, decisions))
    return this.around ? this.around(req, calls, ask) : ask()
  }

  /** Records the decisions and writes their headers; answers a denied request. */
  #obey(
    req: Req,
    res: Res,
    counted: readonly Counted<Req, Res>[],
    decisions: readonly Decision[],
  ): MaybePromise<Denied | undefined> {
    const isAllowed = decisions.every(({ allowed }) => allowed)
    const decided = decidedParts(counted, decisions, isAllowed)
    const binding = decided.reduce((one, other) =>
      moreRestrictive(one.decision, other.decision) === one.decision ? one : other,
    )
    const all = this.#record(req, decided, binding)
    for (const { writeHeaders } of new Set(decided.map(({ part }) => part.frame))) writeHeaders?.(all, res)
    if (!isAllowed) {
      for (const { part, decision } of decided) {
        if (!decision.allowed) part.reportExceeded?.(req, res, decision.key, decision)
      }
      return binding.part.frame.respond.deny(req, res, binding.decision, all)
    }
    const byCallback = new Map<NonNullable<OneLimit<Req, Res>['shouldCharge']>, Decision[]>()
    for (const { part, decision } of decided) {
      if (part.shouldCharge) getOrMake(byCallback, part.shouldCharge, () => []).push(decision)
    }
    for (const [shouldCharge, decisions] of byCallback) {
      const settle = () =>
        void settleByOutcome(decided[0]!.part.limiter, decisions, () => shouldCharge(req, res))
      this.platform.onFinished(req, res, settle)
    }
    return undefined
  }

  /** Returns the decisions of all limiters about the request, of which the binding one is the latest. */
  #record(
    req: Req,
    decided: readonly Decided<Req, Res>[],
    binding: Decided<Req, Res>,
  ): readonly RequestDecision[] {
    let all: readonly RequestDecision[] = []
    for (const each of decided) {
      all = each.part.recorder.record(req, each.decision)
      if (each !== binding) this.platform.decided?.(req, each.decision)
    }
    binding.part.recorder.bind(req, binding.decision)
    this.platform.decided?.(req, binding.decision)
    return all
  }
}

/**
 * Adds to `counted` those of `parts` from `next` on that count a request, in their order. Returns the answer to a caller who
 * has hung up.
 */
function countParts<Req, Res>(
  req: Req,
  parts: readonly OneLimit<Req, Res>[],
  counted: Counted<Req, Res>[],
  next: number,
): MaybePromise<Denied | undefined> {
  const part = parts[next]
  if (!part) return undefined
  return chain(
    part.guard.check(req, counted),
    (denied) => denied ?? countParts(req, parts, counted, next + 1),
  )
}

/** The parts whose store was asked, each key once. Of a part that was not asked nothing is known. */
function decidedParts<Req, Res>(
  counted: readonly Counted<Req, Res>[],
  decisions: readonly Decision[],
  isAllowed: boolean,
): readonly Decided<Req, Res>[] {
  return counted.flatMap(({ part }, i) => {
    const decision = decisions[i]!
    const isKnown = isAllowed || decision.reason !== undefined || decision[ANSWER].from !== 'none'
    return isKnown && decisions.indexOf(decision) === i ? [{ part, decision }] : []
  })
}
