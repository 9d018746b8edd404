import type { Policy } from '../algorithms/contract/policy.js'
import { checkCost } from '../values/cost.js'
import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import type { MaybePromise } from '../stores/store.js'
import { chain, isPromise } from './chain.js'
import { addressesOf, addressOf, keepAddresses } from './client-address.js'
import { decisionsAbout, record, replaceDecision, type RequestDecision, sharesName } from './decisions.js'
import type { Denied } from './denial.js'
import { type Access, accessChooser } from './access.js'
import { wentOver } from './exceeded.js'
import { headerWriter } from './headers.js'
import { HUNG_UP, unlessHungUp } from './hung-up.js'
import { byIp, holdsRawIpv6, type KeySource } from './keys.js'
import { type EarlierDenial, operationsOf } from './operations.js'
import { type GuardOptions, limiterOf, policyChooser } from './options.js'
import type { Platform } from './platform.js'
import { responder } from './responder.js'
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
  const respond = responder(options, platform)
  const choosePolicies = policyChooser(options)
  const { key: keyOf = byIp(), cost: costOf, shouldCharge, onExceeded } = options
  const repeats = (req: Req): boolean => platform.repeats?.(req) ?? false
  const source: KeySource<Req> = {
    ...platform,
    address: (req) => addressOf(req, platform),
    socketAddress: (req) => addressesOf(req, platform).socketAddress,
    hungUp: (req) => addressesOf(req, platform).hungUp,
    warn: (warning) => warn(limiter, warning),
  }
  const chooseAccess = accessChooser(options, source)
  if (!options.limiter) warnInsideHandler(limiter, platform.handlerFrame)

  return Object.assign(guard, { limiter, giveBack })

  async function giveBack(req: Req, res: Res, decision: Decision): Promise<void> {
    const difference = await decision.settle(0)
    const request = platform.identity(req)
    replaceDecision(request, decision, decision.afterGivingBack(-difference))
    if (writeHeaders && !platform.headersSent(res))
      writeHeaders(decisionsAbout(request), respond.setterOf(res))
  }

  function guard(req: Req, res: Res): MaybePromise<Denied | undefined> {
    const answer = chooseAccess
      ? chain(unlessHungUp(chooseAccess, req, source), (access) => enter(req, res, access))
      : admit(req, res)
    // The addresses are read now, as a closed connection no longer has them.
    if (isPromise(answer)) keepAddresses(req, platform)
    return answer
  }

  /** Counts the request, lets it pass uncounted, or answers 403. */
  function enter(req: Req, res: Res, access: Access | typeof HUNG_UP): MaybePromise<Denied | undefined> {
    if (access === 'count') return admit(req, res)
    if (access === 'pass') return undefined
    return access === HUNG_UP ? { answer: undefined, hungUp: true } : respond.forbid(req, res)
  }

  /** Finds the key and the cost, and decides. */
  function admit(req: Req, res: Res): MaybePromise<Denied | undefined> {
    const key = unlessHungUp(keyOf, req, source)
    // Not `chain`: here and below, a request that waits for nothing makes no closure.
    return isPromise(key) ? key.then((later) => count(req, res, later)) : count(req, res, key)
  }

  function count(req: Req, res: Res, key: string | typeof HUNG_UP): MaybePromise<Denied | undefined> {
    if (key === HUNG_UP) return { answer: undefined, hungUp: true }
    if (options.key && holdsRawIpv6(key, req, source)) warn(limiter, 'KEY_RAW_IPV6')
    const earlier = deniedEarlier(req, res, key)
    if (earlier) return earlier
    if (!costOf) return decide(req, res, key, 1)
    return chain(costOf(req), (cost) => decide(req, res, key, checkCost(cost)))
  }

  /** Decides. Of the operations of one GraphQL request only some are decided at once (operations.ts). */
  function decide(req: Req, res: Res, key: string, cost: number): MaybePromise<Denied | undefined> {
    if (!repeats(req)) return ask(req, res, key, cost)
    const operations = operationsOf(platform.identity(req), limiter, key)
    return operations.run(() => deniedEarlier(req, res, key, cost) ?? ask(req, res, key, cost))
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
    return isPromise(decision)
      ? decision.then((later) => obey(req, res, key, cost, later))
      : obey(req, res, key, cost, decision)
  }

  /**
   * The answer if the limiter has denied an earlier operation of this GraphQL request, and so denies this one. `cost` is
   * undefined while unknown.
   */
  function deniedEarlier(req: Req, res: Res, key: string, cost?: number): MaybePromise<Denied> | undefined {
    const denial = repeats(req) && operationsOf(platform.identity(req), limiter, key).denialFor(cost)
    if (!denial) return undefined
    platform.decided?.(req, denial.decision)
    return denial.answers.get(guard) ?? denyOperation(req, res, key, denial)
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
    if (!decision.allowed) {
      if (!repeats(req)) return deny(req, res, key, decision)
      return denyOperation(req, res, key, { decision, cost, answers: new Map() })
    }
    recordAndWrite(req, res, key, decision)
    if (shouldCharge) platform.onFinished(req, res, () => void settleByOutcome(req, res, decision))
    return undefined
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

  /** A denial that decides the later operations of the same request too. */
  function denyOperation(req: Req, res: Res, key: string, denial: EarlierDenial): MaybePromise<Denied> {
    const denied = deny(req, res, key, denial.decision)
    denial.answers.set(guard, denied)
    operationsOf(platform.identity(req), limiter, key).remember(denial)
    return denied
  }

  function deny(req: Req, res: Res, key: string, decision: Decision): MaybePromise<Denied> {
    const all = recordAndWrite(req, res, key, decision)
    if (onExceeded && decision.reason === 'limit' && wentOver(limiter, key, decision))
      void reportExceeded(req, res, decision)
    return respond.deny(req, res, decision, all)
  }

  /** An error in `onExceeded` does not affect the request. */
  async function reportExceeded(req: Req, res: Res, decision: Decision): Promise<void> {
    try {
      await onExceeded!(req, res, decision)
    } catch (error) {
      limiter.warn('EXCEEDED_FAILED', `onExceeded failed: ${String(error)}`)
    }
  }

  /** Adds a decision to those about the request, and writes the headers for all of them. Returns all. */
  function recordAndWrite(req: Req, res: Res, key: string, decision: Decision): readonly RequestDecision[] {
    const request = platform.identity(req)
    const inHeaders = writeHeaders !== undefined
    if (record(request, { limiter, decision, inHeaders }, key, repeats(req))) warn(limiter, 'COUNTED_TWICE')
    const all = decisionsAbout(request)
    if (all.length > 1 && sharesName(all, limiter)) warn(limiter, 'NAME_TWICE')
    if (writeHeaders && !platform.headersSent(res)) writeHeaders(all, respond.setterOf(res))
    return all
  }
}
