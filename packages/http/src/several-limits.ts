import {
  decideAll,
  type Decision,
  type Limiter,
  type PartOptions,
  type Policy,
  PolicyError,
  type WholeDecision,
} from '@sluice/core'
import { ANSWER, checkCost } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { type Access, accessChooser } from './access.js'
import { settleByOutcome } from './charge-by-outcome.js'
import { addressReader, byIp, keepAddresses, type KeySource } from './caller.js'
import { moreRestrictive, Recorder, type RequestDecision } from './decisions.js'
import { type Denied, ifHungUp, type Responder, responder } from './denial.js'
import { exceededReporter, type ReportExceeded } from './exceeded.js'
import { getOrMake } from './get-or-make.js'
import { headerSetter, headerWriter, type WriteHeaders } from './headers.js'
import { holdsRawIpv6 } from './keys.js'
import { checkMostParts, limiterOf, partsOf, policyChooser, type RequestLimitOptions } from './options.js'
import { chain, type Platform } from './platform.js'
import { warn, warnInsideHandler } from './setup-warnings.js'

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

/**
 * Makes the guard of options with `limits`.
 * @throws {PolicyError} for options that cannot work.
 */
export function guardOfSeveral<Req, Res>(
  options: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
  around?: AskAboutSeveral<Req>,
) {
  const frame = frameOf(options, platform)
  const parts = partsOf(options).map((part) => new OneLimit(part, limiterOf(part), frame))
  const guard = new SeveralGuard(parts, platform, around)
  const limiters = parts.map(({ limiter }) => limiter)
  checkNames(limiters)
  return Object.assign(guard.check.bind(guard), { limiter: limiters[0]!, limiters, options })
}

/**
 * Makes one guard of several, whose limits are decided together. Each keeps its own callbacks, headers and answer.
 * @throws {PolicyError} INVALID_OPTION if they have more than 16 limits.
 */
export function combineGuards<Req, Res>(
  guards: readonly CombinableGuard<Req, Res>[],
  platform: Platform<Req, Res>,
  around?: AskAboutSeveral<Req>,
) {
  const frames = new Map<object, PartFrame<Req, Res>>()
  const parts = guards.map(({ options, limiter, place }) => {
    const frame = getOrMake(frames, options, () => frameOf(options, platform))
    const { skip: _ofFrame, ...alone } = options
    return new OneLimit(place === undefined ? alone : partsOf(options)[place]!, limiter, frame)
  })
  checkMostParts(parts)
  const guard = new SeveralGuard(parts, platform, around)
  const limiters: readonly Limiter[] = parts.map(({ limiter }) => limiter)
  return Object.assign(guard.check.bind(guard), { limiters })
}

/** A guard of one limit, or one of the limits of a guard, as far as another is made of it. */
export interface CombinableGuard<Req, Res> {
  readonly limiter: Limiter
  readonly options: RequestLimitOptions<Req, Res>
  /** Of one of `options.limits`. */
  readonly place?: number
}

/** The common part of the limits of one guard: who is counted at all, and how requests are answered. */
type PartFrame<Req, Res> = ReturnType<typeof frameOf<Req, Res>>

function frameOf<Req, Res>(options: RequestLimitOptions<Req, Res>, platform: Platform<Req, Res>) {
  const setHeader = headerSetter(options.headerNames, platform)
  const writeHeaders: WriteHeaders<Res> | undefined = headerWriter(options, platform, setHeader)
  const respond: Responder<Req, Res> = responder(options.onDenied, platform, setHeader)
  return { options, platform, writeHeaders, respond }
}

/** One limit, as requests are counted under it. */
class OneLimit<Req, Res> {
  readonly source: KeySource<Req>
  readonly recorder: Recorder<Req>
  readonly reportExceeded: ReportExceeded<Req, Res> | undefined
  readonly shouldCharge: RequestLimitOptions<Req, Res>['shouldCharge']
  readonly #options: RequestLimitOptions<Req, Res>
  readonly #keyOf
  readonly #choosePolicies

  constructor(
    options: RequestLimitOptions<Req, Res>,
    readonly limiter: Limiter,
    readonly frame: PartFrame<Req, Res>,
  ) {
    const { platform, writeHeaders } = frame
    const { onExceeded } = frame.options
    this.source = { ...platform, ...addressReader(platform), warn: (warning) => warn(limiter, warning) }
    this.recorder = new Recorder(limiter, writeHeaders !== undefined, platform)
    this.reportExceeded = onExceeded && exceededReporter(limiter, onExceeded)
    this.shouldCharge = options.shouldCharge
    this.#options = options
    this.#keyOf = options.key ?? byIp<Req>()
    this.#choosePolicies = policyChooser(options)
    if (!options.limiter) warnInsideHandler(limiter, platform.handlerFrame)
  }

  /** The part of the decision about a request; undefined if the request is not counted here. */
  of(req: Req): MaybePromise<PartOptions | undefined> {
    const { skip } = this.#options
    if (!skip) return this.#counted(req)
    return chain(skip(req), (isSkipped) => (isSkipped ? undefined : this.#counted(req)))
  }

  #counted(req: Req): MaybePromise<PartOptions> {
    return chain(this.#keyOf(req, this.source), (key) => {
      if (this.#options.key && holdsRawIpv6(key, req, this.source)) warn(this.limiter, 'KEY_RAW_IPV6')
      return chain(this.#options.cost?.(req) ?? 1, (cost) => this.#part(req, key, checkCost(cost)))
    })
  }

  #part(req: Req, key: string, cost: number): MaybePromise<PartOptions> {
    const { limiter } = this
    const part = (policies: readonly Policy[] | undefined): PartOptions =>
      policies ? { limiter, key, cost, policies } : { limiter, key, cost }
    return chain(this.#choosePolicies?.(req), part)
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

class SeveralGuard<Req, Res> {
  readonly #frames: readonly Framed<Req, Res>[]

  constructor(
    parts: readonly OneLimit<Req, Res>[],
    private readonly platform: Platform<Req, Res>,
    private readonly around: AskAboutSeveral<Req> | undefined,
  ) {
    this.#frames = [...new Set(parts.map(({ frame }) => frame))].map((frame) => {
      const own = parts.filter((part) => part.frame === frame)
      return { frame, parts: own, chooseAccess: accessChooser(frame.options, own[0]!.source) }
    })
  }

  check(req: Req, res: Res): MaybePromise<Denied | undefined> {
    let counted
    try {
      counted = this.#enter(req, [], 0)
    } catch (error) {
      return ifHungUp(error)
    }
    if (!(counted instanceof Promise)) return this.#decide(req, res, counted)
    keepAddresses(req, this.platform)
    return counted.then((later) => this.#decide(req, res, later), ifHungUp)
  }

  /** Adds to `counted` the parts of the frames from `next` on. Returns the responder of a frame that forbids the request. */
  #enter(req: Req, counted: Counted<Req, Res>[], next: number): MaybePromise<Entered<Req, Res>> {
    const framed = this.#frames[next]
    if (!framed) return counted
    return chain(framed.chooseAccess?.(req) ?? 'count', (access) => {
      if (access === 'forbid') return framed.frame.respond
      const parts = access === 'count' ? framed.parts : []
      return chain(countParts(req, parts, counted, 0), () => this.#enter(req, counted, next + 1))
    })
  }

  #decide(req: Req, res: Res, counted: Entered<Req, Res>): MaybePromise<Denied | undefined> {
    if (!Array.isArray(counted)) return counted.forbid(req, res)
    if (counted.length === 0) return undefined
    const calls = counted.map(({ call }) => call)
    const ask = (): MaybePromise<Denied | undefined> =>
      chain(decideAll(calls), (whole) => this.#obey(req, res, decidedParts(counted, whole), whole))
    return this.around ? this.around(req, calls, ask) : ask()
  }

  /** Records the decisions and writes their headers; answers a denied request. */
  #obey(
    req: Req,
    res: Res,
    decided: readonly Decided<Req, Res>[],
    whole: WholeDecision,
  ): MaybePromise<Denied | undefined> {
    const binding = decided.reduce((one, other) =>
      moreRestrictive(one.decision, other.decision) === one.decision ? one : other,
    )
    const all = this.#record(req, decided, binding)
    for (const { writeHeaders } of new Set(decided.map(({ part }) => part.frame))) writeHeaders?.(all, res)
    if (!whole.allowed) {
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

/** The parts under which a request is counted, or what answers one that is forbidden. */
type Entered<Req, Res> = Counted<Req, Res>[] | Responder<Req, Res>

/** Adds to `counted` those of `parts` from `next` on that count a request, in their order. */
function countParts<Req, Res>(
  req: Req,
  parts: readonly OneLimit<Req, Res>[],
  counted: Counted<Req, Res>[],
  next: number,
): MaybePromise<void> {
  const part = parts[next]
  if (!part) return undefined
  return chain(part.of(req), (call) => {
    if (call) counted.push({ part, call })
    return countParts(req, parts, counted, next + 1)
  })
}

/** The parts whose store was asked, each key once. Of a part that was not asked nothing is known. */
function decidedParts<Req, Res>(
  counted: readonly Counted<Req, Res>[],
  { allowed, decisions }: WholeDecision,
): readonly Decided<Req, Res>[] {
  return counted.flatMap(({ part }, i) => {
    const decision = decisions[i]!
    const isKnown = allowed || decision.reason !== undefined || decision[ANSWER].from !== 'none'
    return isKnown && decisions.indexOf(decision) === i ? [{ part, decision }] : []
  })
}

/** Limits are listed by their names in headers, and found by them. */
function checkNames(limiters: readonly Limiter[]): void {
  const own = [...new Set(limiters)]
  const twice = own.find(({ name }, i) => own.findIndex((other) => other.name === name) !== i)
  if (!twice) return
  throw new PolicyError(
    'INVALID_OPTION',
    `two of limits are named '${twice.name}': give each a name of its own`,
  )
}
