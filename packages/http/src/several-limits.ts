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
import { addressReader, keepAddresses } from './client-address.js'
import { moreRestrictive, Recorder, type RequestDecision } from './decisions.js'
import { type Denied, ifHungUp, type Responder, responder } from './denial.js'
import { exceededReporter, type ReportExceeded } from './exceeded.js'
import { getOrMake } from './get-or-make.js'
import { headerSetter, headerWriter, type WriteHeaders } from './headers.js'
import { byIp, holdsRawIpv6, type KeySource } from './keys.js'
import { limiterOf, partsOf, policyChooser, type RequestLimitOptions } from './options.js'
import { chain, type Platform, type SetHeader } from './platform.js'
import { warn, warnInsideHandler } from './setup-warnings.js'

/*
 * A request under several limits, in one decision: it is charged under all of them, or under none. Guards one after the other
 * are independent: what the first has charged stays charged when the second denies.
 */

/**
 * Makes the guard of options with `limits`.
 * @throws {PolicyError} for options that cannot work.
 */
export function guardOfSeveral<Req, Res>(
  options: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
) {
  const guard = new SeveralGuard(options, platform)
  const { limiters } = guard
  return Object.assign(guard.check.bind(guard), {
    limiter: limiters[0]!,
    limiters,
    giveBack: guard.giveBack.bind(guard),
  })
}

/** One limit, as requests are counted under it. */
class OneLimit<Req, Res> {
  readonly limiter: Limiter
  readonly source: KeySource<Req>
  readonly recorder: Recorder<Req>
  readonly reportExceeded: ReportExceeded<Req, Res> | undefined
  readonly shouldCharge: RequestLimitOptions<Req, Res>['shouldCharge']
  readonly #options: RequestLimitOptions<Req, Res>
  readonly #keyOf
  readonly #choosePolicies

  constructor(
    options: RequestLimitOptions<Req, Res>,
    whole: RequestLimitOptions<Req, Res>,
    platform: Platform<Req, Res>,
  ) {
    const limiter = limiterOf(options)
    this.limiter = limiter
    this.source = { ...platform, ...addressReader(platform), warn: (warning) => warn(limiter, warning) }
    this.recorder = new Recorder(limiter, headerWriter(whole) !== undefined, platform)
    this.reportExceeded = whole.onExceeded && exceededReporter(limiter, whole.onExceeded)
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

class SeveralGuard<Req, Res> {
  readonly limiters: readonly Limiter[]
  readonly #platform: Platform<Req, Res>
  readonly #parts: readonly OneLimit<Req, Res>[]
  readonly #writeHeaders: WriteHeaders | undefined
  readonly #setHeader: SetHeader<Res>
  readonly #respond: Responder<Req, Res>
  readonly #chooseAccess: ((req: Req) => MaybePromise<Access>) | undefined

  constructor(options: RequestLimitOptions<Req, Res>, platform: Platform<Req, Res>) {
    const parts = partsOf(options).map((part) => new OneLimit(part, options, platform))
    this.limiters = parts.map(({ limiter }) => limiter)
    checkLimiters(this.limiters)
    this.#platform = platform
    this.#parts = parts
    this.#writeHeaders = headerWriter(options)
    this.#setHeader = headerSetter(options.headerNames, platform)
    this.#respond = responder(options.onDenied, platform, this.#setHeader)
    this.#chooseAccess = accessChooser(options, parts[0]!.source)
  }

  check(req: Req, res: Res): MaybePromise<Denied | undefined> {
    let counted
    try {
      const access = this.#chooseAccess?.(req) ?? 'count'
      counted = chain(access, (known) => (known === 'count' ? this.#count(req, []) : known))
    } catch (error) {
      return ifHungUp(error)
    }
    if (!(counted instanceof Promise)) return this.#decide(req, res, counted)
    keepAddresses(req, this.#platform)
    return counted.then((later) => this.#decide(req, res, later), ifHungUp)
  }

  /** Adds to `counted` the parts from `next` on, in their order. */
  #count(req: Req, counted: Counted<Req, Res>[], next = 0): MaybePromise<readonly Counted<Req, Res>[]> {
    const part = this.#parts[next]
    if (!part) return counted
    return chain(part.of(req), (call) => {
      if (call) counted.push({ part, call })
      return this.#count(req, counted, next + 1)
    })
  }

  #decide(
    req: Req,
    res: Res,
    counted: readonly Counted<Req, Res>[] | 'pass' | 'forbid',
  ): MaybePromise<Denied | undefined> {
    if (counted === 'forbid') return this.#respond.forbid(req, res)
    if (counted === 'pass' || counted.length === 0) return undefined
    const decided = decideAll(counted.map(({ call }) => call))
    return chain(decided, (whole) => this.#obey(req, res, decidedParts(counted, whole), whole))
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
    this.#write(all, res)
    if (!whole.allowed) {
      for (const { part, decision } of decided) {
        if (!decision.allowed) part.reportExceeded?.(req, res, decision.key, decision)
      }
      return this.#respond.deny(req, res, binding.decision, all)
    }
    const byCallback = new Map<NonNullable<OneLimit<Req, Res>['shouldCharge']>, Decision[]>()
    for (const { part, decision } of decided) {
      if (part.shouldCharge) getOrMake(byCallback, part.shouldCharge, () => []).push(decision)
    }
    for (const [shouldCharge, decisions] of byCallback) {
      const settle = () => void settleByOutcome(this.limiters[0]!, decisions, () => shouldCharge(req, res))
      this.#platform.onFinished(req, res, settle)
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
      if (each !== binding) this.#platform.decided?.(req, each.decision)
    }
    binding.part.recorder.bind(req, binding.decision)
    this.#platform.decided?.(req, binding.decision)
    return all
  }

  #write(all: readonly RequestDecision[], res: Res): void {
    const writeHeaders = this.#writeHeaders
    if (writeHeaders && !this.#platform.headersSent(res)) writeHeaders(all, res, this.#setHeader)
  }

  async giveBack(req: Req, res: Res, decision: Decision): Promise<void> {
    const difference = await decision.settle(0)
    const { recorder } = this.#parts[0]!
    this.#write(recorder.replace(req, decision, decision.afterGivingBack(-difference)), res)
  }
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
function checkLimiters(limiters: readonly Limiter[]): void {
  const own = [...new Set(limiters)]
  const twice = own.find(({ name }, i) => own.findIndex((other) => other.name === name) !== i)
  if (!twice) return
  throw new PolicyError(
    'INVALID_OPTION',
    `two of limits are named '${twice.name}': give each a name of its own`,
  )
}
