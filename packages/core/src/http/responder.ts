import type { Decision } from '../limiter/decision.js'
import type { MaybePromise } from '../stores/store.js'
import { chain } from './chain.js'
import type { RequestDecision } from './decisions.js'
import { denialResponse, type Denied, FORBIDDEN, FORBIDDEN_TEXT, PROBLEM_TYPE } from './denial.js'
import { headerRenamer } from './header-names.js'
import type { GuardOptions } from './options.js'
import type { Platform, SetHeader } from './platform.js'

/** Answers the requests that may not pass. A response that has begun is left to its handler. */
export interface Responder<Req, Res> {
  /** Answers a request that `decision` denied; `all` are the decisions about it. */
  deny(req: Req, res: Res, decision: Decision, all: readonly RequestDecision[]): MaybePromise<Denied>
  /** Answers a caller in the list `deny`. */
  forbid(req: Req, res: Res): Denied
  /** Sets headers of a response, under the names that `headerNames` gives. */
  setterOf(res: Res): SetHeader
}

/** @throws {PolicyError} INVALID_OPTION for invalid `headerNames`. */
export function responder<Req, Res>(
  { headerNames, onDenied }: GuardOptions<Req, Res>,
  platform: Platform<Req, Res>,
): Responder<Req, Res> {
  const renamed = headerRenamer(headerNames)
  return { deny, forbid, setterOf }

  function deny(
    req: Req,
    res: Res,
    decision: Decision,
    all: readonly RequestDecision[],
  ): MaybePromise<Denied> {
    if (platform.headersSent(res)) return { answer: undefined }
    const { status, retryAfter, problem, text } = denialResponse(decision, all)
    const set = setterOf(res)
    platform.setStatus(res, status)
    set('Cache-Control', 'no-store')
    if (retryAfter !== undefined) set('Retry-After', String(retryAfter))
    if (onDenied) return chain(onDenied(req, res, decision), (given) => ({ answer: given }))
    set('Content-Type', PROBLEM_TYPE)
    return { answer: platform.send(req, res, problem, text) }
  }

  function forbid(req: Req, res: Res): Denied {
    if (platform.headersSent(res)) return { answer: undefined, forbidden: true }
    platform.setStatus(res, FORBIDDEN.status)
    platform.setHeader(res, 'Cache-Control', 'no-store')
    platform.setHeader(res, 'Content-Type', PROBLEM_TYPE)
    return { answer: platform.send(req, res, FORBIDDEN, FORBIDDEN_TEXT), forbidden: true }
  }

  function setterOf(res: Res): SetHeader {
    const set: SetHeader = (name, value) => platform.setHeader(res, name, value)
    return renamed ? renamed(set) : set
  }
}
