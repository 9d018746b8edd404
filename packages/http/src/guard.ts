import type { CallOptions, Decision, Limiter } from '@sluice/core'
import { checkCost } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { type Access, accessChooser } from './access.js'
import { settleByOutcome } from './charge-by-outcome.js'
import { addressReader, byIp, keepAddresses, type KeyFunction, type KeySource } from './caller.js'
import { Recorder, type RequestDecisions } from './decisions.js'
import { type Denied, ifHungUp, type Responder, responder } from './denial.js'
import { exceededReporter, type ReportExceeded } from './exceeded.js'
import { headerSetter, headerWriter, type WriteHeaders } from './headers.js'
import { holdsRawIpv6 } from './keys.js'
import { type ChoosePolicies, type RequestLimitOptions, policyChooser } from './options.js'
import { chain, type Platform, whenSent } from './platform.js'
import { warn, warnInsideHandler } from './setup-warnings.js'
import { type WaitingRequests, waitingRequests } from './waiting.js'

export interface Guard<Req, Res> {
  /** Returns undefined if the request may pass; otherwise the request has been answered. */
  (req: Req, res: Res): MaybePromise<Denied | undefined>
  /** The limiter; of several limits together that of the first. */
  readonly limiter: Limiter
  /** All limiters that count a request, in their order. */
  readonly limiters: readonly Limiter[]
  readonly options: RequestLimitOptions<Req, Res>
}

/** Steps of a guard that others may be put around, for requests that are decided together. */
export interface GuardSteps<Req, Res> {
  readonly limiter: Limiter
  /** Finds the cost of a request, and asks. */
  count(req: Req, res: Res, key: string): MaybePromise<Denied | undefined>
  /** Asks the limiter; a request that it denies goes to `deny`. */
  ask(req: Req, res: Res, key: string, cost: number): MaybePromise<Denied | undefined>
  /** Records a denial and answers it. */
  deny(req: Req, res: Res, key: string, cost: number, decision: Decision): MaybePromise<Denied>
}

/** Returns steps to take in place of the guard's own. */
export type AroundSteps<Req, Res> = (steps: GuardSteps<Req, Res>) => GuardSteps<Req, Res>

/** The steps in their order. A request that waits for nothing takes them in one tick and makes no closure. */
export class RequestGuard<Req, Res> implements GuardSteps<Req, Res> {
  /** Returns undefined if a request may pass; otherwise it has been answered. */
  readonly check: (req: Req, res: Res) => MaybePromise<Denied | undefined>
  /** The policies of each request; undefined if the limiter's own apply to all. */
  readonly choosePolicies: ChoosePolicies<Req> | undefined
  readonly source: KeySource<Req>
  readonly #platform: Platform<Req, Res>
  readonly #steps: GuardSteps<Req, Res>
  readonly writeHeaders: WriteHeaders<Res> | undefined
  readonly recorder: Recorder<Req>
  readonly respond: Responder<Req, Res>
  readonly #keyOf: KeyFunction<Req>
  readonly reportExceeded: ReportExceeded<Req, Res> | undefined
  readonly #chooseAccess: ((req: Req) => MaybePromise<Access>) | undefined
  readonly #waiting: WaitingRequests | undefined

  /**
   * Reads the options once, and makes from them the functions that each request passes through: how its key is found, how
   * headers are written, how it is answered. A request begins with `#enter` if the options `deny`, `allow` or `skip` may let
   * it pass or refuse it without a decision, else with `#identify`. Its further steps (`count`, `ask`, `deny`) are those that
   * `around` returns in place of the guard's own, such as one that asks several limits in one call. A limiter that was made
   * from the options inside a request handler causes a warning, as it would begin to count with each request.
   */
  constructor(
    readonly options: RequestLimitOptions<Req, Res>,
    readonly limiter: Limiter,
    platform: Platform<Req, Res>,
    around?: AroundSteps<Req, Res>,
  ) {
    this.#platform = platform
    this.#steps = around ? around(this) : this
    const setHeader = headerSetter(options.headerNames, platform)
    this.writeHeaders = headerWriter(options, platform)
    this.recorder = new Recorder(limiter, this.writeHeaders !== undefined, platform)
    this.respond = responder(options, platform, setHeader, limiter)
    this.choosePolicies = policyChooser(options)
    this.#keyOf = options.key ?? byIp()
    this.reportExceeded = options.onExceeded && exceededReporter(limiter, options.onExceeded)
    this.source = {
      ...platform,
      ...addressReader(platform),
      warn: (warning) => warn(limiter, warning, platform.proxySetting),
    }
    this.#chooseAccess = accessChooser(options, this.source)
    this.#waiting = waitingRequests(options)
    this.check = this.#chooseAccess ? this.#enter.bind(this) : this.#identify.bind(this)
    if (!options.limiter) warnInsideHandler(limiter, platform.handlerFrame)
  }

  /**
   * Asks the options `deny`, `allow` and `skip` about a request, which is then counted, passes uncounted, or is answered 403.
   * This is the first step of a guard that has one of these options. Before it waits for an async one, it keeps the caller's
   * address, which a closed connection does not have any more. Returns undefined if the request may pass. A caller that has
   * hung up gets no answer (`ifHungUp`).
   */
  #enter(req: Req, res: Res): MaybePromise<Denied | undefined> {
    let access
    try {
      access = this.#chooseAccess!(req)
    } catch (error) {
      return ifHungUp(error)
    }
    if (typeof access === 'string') return this.#follow(access, req, res)
    keepAddresses(req, this.#platform)
    return Promise.resolve(access).then((later) => this.#follow(later, req, res), ifHungUp)
  }

  /**
   * Acts on the outcome of `deny`, `allow` and `skip`: goes on to find the request's key if it is counted, returns
   * undefined if it passes uncounted, or answers 403.
   */
  #follow(access: Access, req: Req, res: Res): MaybePromise<Denied | undefined> {
    if (access === 'count') return this.#identify(req, res)
    return access === 'pass' ? undefined : this.respond.forbid(req, res)
  }

  /**
   * Finds the key of the request by the option `key` (default: the caller's address) and goes on to its cost. Before it
   * waits for an async key, it keeps the caller's address for limits that come later, because a closed connection has
   * none. A caller that has hung up gets no answer (`ifHungUp`); any other error of `key` is thrown on.
   */
  #identify(req: Req, res: Res): MaybePromise<Denied | undefined> {
    let key
    try {
      key = this.#keyOf(req, this.source)
    } catch (error) {
      return ifHungUp(error)
    }
    // Not `chain`: here and below, it would make a closure for a key that is there.
    if (typeof key === 'string') return this.#steps.count(req, res, key)
    keepAddresses(req, this.#platform)
    return Promise.resolve(key).then((later) => this.#steps.count(req, res, later), ifHungUp)
  }

  /**
   * Finds the cost of the request by the option `cost` (1 without it) and asks the limiter. Warns if a key from the
   * user's own function contains a whole IPv6 address: one host has 2^64 of them, and would get an allowance with each.
   */
  count(req: Req, res: Res, key: string): MaybePromise<Denied | undefined> {
    const { key: ownKey, cost: costOf } = this.options
    if (ownKey && holdsRawIpv6(key, req, this.source)) warn(this.limiter, 'KEY_RAW_IPV6')
    if (!costOf) return this.#steps.ask(req, res, key, 1)
    return chain(costOf(req), (cost) => this.#steps.ask(req, res, key, checkCost(cost)))
  }

  /**
   * Asks the limiter about a request of this key and cost. If the option `policies` is a function, it first chooses the
   * policies for the request; where it returns undefined, the limiter's own apply. A cost of 1 without policies needs no
   * options.
   */
  ask(req: Req, res: Res, key: string, cost: number): MaybePromise<Denied | undefined> {
    const { choosePolicies } = this
    if (!choosePolicies) return this.#decide(req, res, key, cost, cost === 1 ? undefined : { cost })
    return chain(choosePolicies(req), (policies) =>
      this.#decide(req, res, key, cost, policies ? { cost, policies } : { cost }),
    )
  }

  /**
   * Has the limiter decide, and obeys the decision. If the option `maxWait` lets requests wait, the decision comes at
   * the request's turn, the instant at which its cost fits. Without it, or while as many requests wait as `maxWaiting`
   * allows, it comes at once: a request that does not fit now is denied.
   */
  #decide(
    req: Req,
    res: Res,
    key: string,
    cost: number,
    options: CallOptions | undefined,
  ): MaybePromise<Denied | undefined> {
    if (this.#waiting?.hasRoom(key)) return this.#decideAtTurn(this.#waiting, req, res, key, options)
    const decision = this.limiter.decide(key, options)
    // A promise has no `allowed`; `in` is faster than instanceof, and true for promises of other libraries.
    return 'allowed' in decision
      ? this.#carryOutDecision(req, res, key, cost, decision)
      : decision.then((later) => this.#carryOutDecision(req, res, key, cost, later))
  }

  /**
   * Waits for the request's turn, the instant at which its cost fits, and obeys the decision. A caller that hangs up
   * while it waits leaves the queue uncharged; then there is no decision, and no answer is sent.
   */
  async #decideAtTurn(
    waiting: WaitingRequests,
    req: Req,
    res: Res,
    key: string,
    options: CallOptions | undefined,
  ): Promise<Denied | undefined> {
    const onHungUp = (listener: () => void) => this.#platform.onHungUp?.(req, res, listener)
    const decision = await waiting.decide(this.limiter, key, options, onHungUp)
    if (!decision) return { answer: undefined, hungUp: true }
    return this.#carryOutDecision(req, res, key, options?.cost ?? 1, decision)
  }

  /**
   * Obeys a decision. A denied request is answered. For an allowed one, the decision is recorded with the request and
   * its headers are written, and once the response has been sent `shouldCharge` is asked whether the charge stays.
   * Returns undefined if the request may pass.
   */
  #carryOutDecision(
    req: Req,
    res: Res,
    key: string,
    cost: number,
    decision: Decision,
  ): MaybePromise<Denied | undefined> {
    const platform = this.#platform
    platform.decided?.(req, decision)
    if (!decision.allowed) return this.#steps.deny(req, res, key, cost, decision)
    this.#record(req, res, decision)
    const { shouldCharge } = this.options
    if (shouldCharge) {
      whenSent(platform, req, res)
        .then(() => settleByOutcome(this.limiter, [decision], () => shouldCharge(req, res)))
        .catch(() => {})
    }
    return undefined
  }

  /**
   * Ends a request that was denied: records the decision with the request and writes its headers (`#record`), reports it to
   * `onExceeded` if the key has only now gone over its limit, and answers the request (429, or what the options say). Steps that take
   * the place of this one may need `_cost`, which is not used here.
   */
  deny(req: Req, res: Res, key: string, _cost: number, decision: Decision): MaybePromise<Denied> {
    const all = this.#record(req, res, decision)
    this.reportExceeded?.(req, res, key, decision)
    return this.respond.deny(req, res, decision, all)
  }

  /**
   * Adds a decision to those about the request, and writes the headers anew from all of them, as all limiters share one set
   * of headers. Returns the decisions of all limiters so far.
   */
  #record(req: Req, res: Res, decision: Decision): RequestDecisions {
    const all = this.recorder.record(req, decision)
    this.writeHeaders?.(all, res)
    return all
  }
}
