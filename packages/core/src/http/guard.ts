import { checkCost } from '../values/cost.js'
import type { Decision } from '../limiter/decision.js'
import type { MaybePromise } from '../stores/store.js'
import { addressesOf, addressOf, isHungUp, keepAddresses } from './addresses.js'
import { after, isPromise } from './after.js'
import { giveBackUnlessCharged } from './charge.js'
import { type Counted, count, countedOf, replaceDecision } from './counted.js'
import { headerWriter } from './headers.js'
import { byIp, type KeySource } from './keys.js'
import { warn, warnInsideHandler } from './misuse.js'
import { type GuardOptions, limiterOf } from './options.js'
import type { Platform, SetHeader } from './platform.js'
import { policyChooser } from './policies.js'
import { denialOf, PROBLEM_TYPE } from './problem.js'
import { holdsRawIpv6 } from './raw-ipv6.js'
import { operationsOf, type Refusal } from './operations.js'

export interface Guard<Req, Res> {
  /** Gives undefined when the request may pass; else it has been answered. */
  (req: Req, res: Res): MaybePromise<Denied | undefined>
  /** Gives back what a decision of this guard charged for a request that another guard refused, and says so in its headers. */
  readonly giveBack: (req: Req, res: Res, decision: Decision) => Promise<void>
}

export interface Denied {
  /** What `onDenied` or the platform's `send` returned. */
  readonly answer: unknown
  /** Nobody is there to be answered. */
  readonly hungUp?: true
}

/**
 * What an adapter calls on each request: skip, key, cost, policies, decision, headers, answer. Nothing is waited for
 * unless a callback or the store makes it wait. What a callback throws or rejects with comes out of the call, and
 * nothing is charged then.
 * @throws {PolicyError} when an option cannot work.
 */
export function createGuard<Req, Res>(
  options: GuardOptions<Req, Res>,
  platform: Platform<Req, Res>,
): Guard<Req, Res> {
  const limiter = limiterOf(options)
  const writeHeaders = headerWriter(options)
  const choosePolicies = policyChooser(options)
  const { key: keyOf = byIp(), cost: costOf = () => 1, skip, shouldCharge, onDenied } = options
  const repeats = (req: Req): boolean => platform.repeats?.(req) ?? false
  const source: KeySource<Req> = {
    ...platform,
    address: (req) => addressOf(req, platform),
    socketAddress: (req) => addressesOf(req, platform).socketAddress,
    hungUp: (req) => addressesOf(req, platform).hungUp,
    warn: (misuse) => warn(limiter, misuse),
  }
  if (!options.limiter) warnInsideHandler(limiter, platform.handlerFrame)

  return Object.assign(guard, { giveBack })

  async function giveBack(req: Req, res: Res, decision: Decision): Promise<void> {
    const difference = await decision.settle(0)
    const request = platform.identity(req)
    replaceDecision(request, decision, decision.afterGivingBack(-difference))
    if (writeHeaders && !platform.headersSent(res)) writeHeaders(countedOf(request), setterOf(res))
  }

  function guard(req: Req, res: Res): MaybePromise<Denied | undefined> {
    const answer = skip
      ? after(skip(req), (skipped) => (skipped ? undefined : admit(req, res)))
      : admit(req, res)
    if (isPromise(answer)) keepAddresses(req, platform)
    return answer
  }

  function admit(req: Req, res: Res): MaybePromise<Denied | undefined> {
    return after(keyFor(req), (key) => {
      if (key === HUNG_UP) return { answer: undefined, hungUp: true }
      if (options.key && holdsRawIpv6(key, req, source)) warn(limiter, 'KEY_RAW_IPV6')
      const before = deniedBefore(req, res, key)
      return before ?? after(costOf(req), (cost) => decide(req, res, key, checkCost(cost)))
    })
  }

  /** HUNG_UP where the caller hung up before it could be told from others: it goes no further, and nobody is charged. */
  function keyFor(req: Req): MaybePromise<string | typeof HUNG_UP> {
    try {
      const key = keyOf(req, source)
      return isPromise(key) ? Promise.resolve(key).catch(ifHungUp) : key
    } catch (error) {
      return ifHungUp(error)
    }
  }

  function decide(req: Req, res: Res, key: string, cost: number): MaybePromise<Denied | undefined> {
    if (!repeats(req)) return ask(req, res, key, cost)
    const operations = operationsOf(platform.identity(req), limiter, key)
    return operations.inTurn(() => deniedBefore(req, res, key, cost) ?? ask(req, res, key, cost))
  }

  function ask(req: Req, res: Res, key: string, cost: number): MaybePromise<Denied | undefined> {
    return after(choosePolicies(req), (policies) => {
      const call = policies ? { cost, policies } : { cost }
      return after(limiter.decide(key, call), (decision) => answer(req, res, key, cost, decision))
    })
  }

  /** What an earlier denial of the same request decides, as far as `cost` is known. */
  function deniedBefore(req: Req, res: Res, key: string, cost?: number): MaybePromise<Denied> | undefined {
    const refusal = repeats(req) && operationsOf(platform.identity(req), limiter, key).refusal(cost)
    if (!refusal) return undefined
    platform.decided?.(req, refusal.decision)
    return refusal.answers.get(guard) ?? respond(req, res, key, refusal)
  }

  function answer(
    req: Req,
    res: Res,
    key: string,
    cost: number,
    decision: Decision,
  ): MaybePromise<Denied | undefined> {
    platform.decided?.(req, decision)
    if (!decision.allowed) return respond(req, res, key, { decision, cost, answers: new Map() })
    record(req, res, key, decision)
    if (shouldCharge) giveBackUnlessCharged(shouldCharge, req, res, platform, limiter, decision)
    return undefined
  }

  function respond(req: Req, res: Res, key: string, refusal: Refusal): MaybePromise<Denied> {
    const all = record(req, res, key, refusal.decision)
    // Whoever began the response has to end it; the request goes no further.
    const denied = platform.headersSent(res) ? { answer: undefined } : deny(req, res, refusal.decision, all)
    if (repeats(req)) {
      refusal.answers.set(guard, denied)
      operationsOf(platform.identity(req), limiter, key).refuse(refusal)
    }
    return denied
  }

  /** Adds a decision to those about the request, and writes the headers of all. */
  function record(req: Req, res: Res, key: string, decision: Decision): readonly Counted[] {
    const counted = { limiter, decision, announced: writeHeaders !== undefined }
    const all = count(platform.identity(req), counted, key, repeats(req))
    if (writeHeaders && !platform.headersSent(res)) writeHeaders(all, setterOf(res))
    return all
  }

  function deny(req: Req, res: Res, decision: Decision, all: readonly Counted[]): MaybePromise<Denied> {
    const { status, retryAfter, problem } = denialOf(decision, all)
    const set = setterOf(res)
    platform.setStatus(res, status)
    set('Cache-Control', 'no-store')
    if (retryAfter !== undefined) set('Retry-After', String(retryAfter))
    if (onDenied) return after(onDenied(req, res, decision), (answer) => ({ answer }))
    set('Content-Type', PROBLEM_TYPE)
    return { answer: platform.send(req, res, problem) }
  }

  function setterOf(res: Res): SetHeader {
    return (name, value) => platform.setHeader(res, name, value)
  }
}

const HUNG_UP = Symbol('hung up')

function ifHungUp(error: unknown): typeof HUNG_UP {
  if (isHungUp(error)) return HUNG_UP
  throw error
}
