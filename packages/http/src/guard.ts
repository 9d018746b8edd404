import type { Decision, Limiter, Policy } from '@sluice/core'
import { checkCost } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { type Access, accessChooser } from './access.js'
import { chain } from './chain.js'
import { addressesOf, addressOf, isHungUp, keepAddresses } from './client-address.js'
import {
  decisionsAbout,
  isCounted,
  record,
  replaceDecision,
  type RequestDecision,
  sharesName,
} from './decisions.js'
import { type Denied, responder } from './denial.js'
import { exceededReporter } from './exceeded.js'
import { headerSetter, headerWriter } from './headers.js'
import { byIp, holdsRawIpv6, type KeySource } from './keys.js'
import { OperationGuard } from './operations.js'
import { type GuardOptions, limiterOf, policyChooser } from './options.js'
import type { Platform } from './platform.js'
import { warn, warnInsideHandler } from './setup-warnings.js'

export interface Guard<Req, Res> {
  /** Returns undefined if the request may pass; otherwise the request has been answered. */
  (req: Req, res: Res): MaybePromise<Denied | undefined>
  readonly limiter: Limiter
  /** Gives back what this guard charged for a request that another guard denied, and corrects the headers. */
  readonly giveBack: (req: Req, res: Res, decision: Decision) => Promise<void>
}

/**
 * Makes the function that an adapter calls on each request: skip, key, cost, policies, decision, headers, answer. It waits
 * only for callbacks and stores that are async. If a callback throws or rejects, so does the call, and nothing is charged.
 * @throws {PolicyError} for options that cannot work.
 */
export function createGuard<Req, Res>(
  options: GuardOptions<Req, Res>,
  platform: Platform<Req, Res>,
): Guard<Req, Res> {
  const limiter = limiterOf(options)
  const writeHeaders = headerWriter(options)
  const recorder = { limiter, inHeaders: writeHeaders !== undefined }
  const setHeader = headerSetter(options.headerNames, platform)
  const respond = responder(options.onDenied, platform, setHeader)
  const choosePolicies = policyChooser(options)
  const { key: keyOf = byIp(), cost: costOf, shouldCharge, onExceeded } = options
  const reportExceeded = onExceeded && exceededReporter(limiter, onExceeded)
  const operations = platform.repeats && new OperationGuard(limiter, platform, { ask, deny })
  const source: KeySource<Req> = {
    ...platform,
    address: (req) => addressOf(req, platform),
    socketAddress: (req) => addressesOf(req, platform).socketAddress,
    hungUp: (req) => addressesOf(req, platform).hungUp,
    warn: (warning) => warn(limiter, warning),
  }
  const { keepDecisions = () => 'on' as const } = platform
  const chooseAccess = accessChooser(options, source)
  if (!options.limiter) warnInsideHandler(limiter, platform.handlerFrame)

  return Object.assign(guard, { limiter, giveBack })

  async function giveBack(req: Req, res: Res, decision: Decision): Promise<void> {
    const difference = await decision.settle(0)
    const all = decisionsAbout(platform.identity(req), keepDecisions(req))
    replaceDecision(all, decision, decision.afterGivingBack(-difference))
    if (writeHeaders && !platform.headersSent(res)) writeHeaders(all, res, setHeader)
  }

  function guard(req: Req, res: Res): MaybePromise<Denied | undefined> {
    return chooseAccess ? enter(req, res, chooseAccess) : admit(req, res)
  }

  /** Counts the request, lets it pass uncounted, or answers 403. */
  function enter(
    req: Req,
    res: Res,
    choose: (req: Req) => MaybePromise<Access>,
  ): MaybePromise<Denied | undefined> {
    const proceed = (access: Access): MaybePromise<Denied | undefined> => {
      if (access === 'count') return admit(req, res)
      return access === 'pass' ? undefined : respond.forbid(req, res)
    }
    let access
    try {
      access = choose(req)
    } catch (error) {
      return ifHungUp(error)
    }
    if (typeof access === 'string') return proceed(access)
    keepAddresses(req, platform)
    return Promise.resolve(access).then(proceed, ifHungUp)
  }

  /** Finds the key and the cost, and decides. */
  function admit(req: Req, res: Res): MaybePromise<Denied | undefined> {
    let key
    try {
      key = keyOf(req, source)
    } catch (error) {
      return ifHungUp(error)
    }
    // Not `chain`: here and below, a request that waits for nothing makes no closure.
    if (typeof key === 'string') return count(req, res, key)
    keepAddresses(req, platform)
    return Promise.resolve(key).then((later) => count(req, res, later), ifHungUp)
  }

  function count(req: Req, res: Res, key: string): MaybePromise<Denied | undefined> {
    if (options.key && holdsRawIpv6(key, req, source)) warn(limiter, 'KEY_RAW_IPV6')
    const earlier = operations?.includes(req) && operations.deniedEarlier(req, res, key)
    if (earlier) return earlier
    if (!costOf) return decide(req, res, key, 1)
    return chain(costOf(req), (cost) => decide(req, res, key, checkCost(cost)))
  }

  function decide(req: Req, res: Res, key: string, cost: number): MaybePromise<Denied | undefined> {
    return operations?.includes(req) ? operations.decide(req, res, key, cost) : ask(req, res, key, cost)
  }

  /** Asks the limiter. */
  function ask(req: Req, res: Res, key: string, cost: number): MaybePromise<Denied | undefined> {
    if (!choosePolicies) return askWith(undefined, req, res, key, cost)
    return chain(choosePolicies(req), (policies) => askWith(policies, req, res, key, cost))
  }

  function askWith(
    policies: readonly Policy[] | undefined,
    req: Req,
    res: Res,
    key: string,
    cost: number,
  ): MaybePromise<Denied | undefined> {
    const decision = limiter.decide(key, policies ? { cost, policies } : cost === 1 ? undefined : { cost })
    // `in` instead of instanceof, as in `consume`.
    return 'allowed' in decision
      ? obey(req, res, key, cost, decision)
      : decision.then((later) => obey(req, res, key, cost, later))
  }

  /** Answers a denied request; records an allowed one and writes its headers. */
  function obey(
    req: Req,
    res: Res,
    key: string,
    cost: number,
    decision: Decision,
  ): MaybePromise<Denied | undefined> {
    platform.decided?.(req, decision)
    if (decision.allowed) {
      recordAndWrite(req, res, key, decision)
      if (shouldCharge) platform.onFinished(req, res, () => void settleByOutcome(req, res, decision))
      return undefined
    }
    if (operations?.includes(req)) return operations.deny(req, res, key, cost, decision)
    return deny(req, res, key, decision)
  }

  /**
   * Gives back what `decision` charged if `shouldCharge` returns false. Any other result and any error keep the charge. It is not
   * called if the caller hangs up before the end of the response.
   */
  async function settleByOutcome(req: Req, res: Res, decision: Decision): Promise<void> {
    try {
      if ((await shouldCharge!(req, res)) === false) await decision.settle(0)
    } catch (error) {
      limiter.warn('CHARGE_FAILED', `shouldCharge failed, so the request stays charged: ${String(error)}`)
    }
  }

  function deny(req: Req, res: Res, key: string, decision: Decision): MaybePromise<Denied> {
    const all = recordAndWrite(req, res, key, decision)
    reportExceeded?.(req, res, key, decision)
    return respond.deny(req, res, decision, all)
  }

  /** Adds a decision to those about the request, and writes the headers for all of them. Returns all. */
  function recordAndWrite(req: Req, res: Res, key: string, decision: Decision): readonly RequestDecision[] {
    const request = platform.identity(req)
    const repeats = operations?.includes(req) === true
    const keep = keepDecisions(req)
    const before = decisionsAbout(request, keep)
    if (before.length > 0) {
      if (!repeats && isCounted(before, limiter, key)) warn(limiter, 'COUNTED_TWICE')
      if (sharesName(before, limiter)) warn(limiter, 'NAME_TWICE')
    }
    const all = record(request, keep, before, recorder, decision, repeats)
    if (writeHeaders && !platform.headersSent(res)) writeHeaders(all, res, setHeader)
    return all
  }
}

/** The answer if the caller hung up before it could be identified: the request goes no further, and no key is charged. */
function ifHungUp(error: unknown): Denied {
  if (isHungUp(error)) return { answer: undefined, hungUp: true }
  throw error
}
