import { checkCost } from '../cost.js'
import type { Decision } from '../decision.js'
import type { MaybePromise } from '../stores/store.js'
import { after } from './after.js'
import { giveBackUnlessCharged } from './charge.js'
import { type Counted, count } from './counted.js'
import { headerWriter } from './headers.js'
import { byIp, type KeySource } from './keys.js'
import { warn, warnInsideHandler } from './misuse.js'
import { type GuardOptions, limiterOf } from './options.js'
import type { Platform, SetHeader } from './platform.js'
import { policyChooser } from './policies.js'
import { denialOf, PROBLEM_TYPE } from './problem.js'

/** Gives undefined when the request may pass; else it has been answered. */
export type Guard<Req, Res> = (req: Req, res: Res) => MaybePromise<Denied | undefined>

export interface Denied {
  /** What `onDenied` or the platform's `send` returned. */
  readonly answer: unknown
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
  const { key: keyOf = byIp(), cost: costOf = () => 1, skip, charge, onDenied } = options
  const source: KeySource<Req> = { ...platform, warn: (misuse) => warn(limiter, misuse) }
  if (!options.limiter) warnInsideHandler(limiter, platform.handlerFrame)

  return function guard(req, res) {
    return skip ? after(skip(req), (skipped) => (skipped ? undefined : admit(req, res))) : admit(req, res)
  }

  function admit(req: Req, res: Res): MaybePromise<Denied | undefined> {
    return after(keyOf(req, source), (key) =>
      after(costOf(req), (cost) =>
        after(choosePolicies(req), (policies) => {
          const units = checkCost(cost)
          const call = policies ? { cost: units, policies } : { cost: units }
          return after(limiter.decide(key, call), (decision) => answer(req, res, key, decision))
        }),
      ),
    )
  }

  function answer(req: Req, res: Res, key: string, decision: Decision): MaybePromise<Denied | undefined> {
    platform.decided?.(req, decision)
    const counted = { limiter, key, decision, announced: writeHeaders !== undefined }
    const all = count(platform.identity(req), counted, platform.repeats?.(req))
    const sent = platform.headersSent(res)
    const set: SetHeader = (name, value) => platform.setHeader(res, name, value)
    if (!sent) writeHeaders?.(all, set)
    if (!decision.allowed) return sent ? ANSWERED_ALREADY : deny(req, res, decision, all, set)
    if (charge) giveBackUnlessCharged(charge, req, res, platform, limiter, decision)
    return undefined
  }

  function deny(
    req: Req,
    res: Res,
    decision: Decision,
    all: readonly Counted[],
    set: SetHeader,
  ): MaybePromise<Denied> {
    const { status, retryAfter, problem } = denialOf(decision, all)
    platform.setStatus(res, status)
    set('Cache-Control', 'no-store')
    if (retryAfter !== undefined) set('Retry-After', String(retryAfter))
    if (onDenied) return after(onDenied(req, res, decision), (answer) => ({ answer }))
    set('Content-Type', PROBLEM_TYPE)
    return { answer: platform.send(req, res, problem) }
  }
}

/** Whoever began the response has to end it; the request goes no further. */
const ANSWERED_ALREADY: Denied = { answer: undefined }
