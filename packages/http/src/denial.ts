import type { Decision, Limiter } from '@sluice/core'
import { policiesOf } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { isHungUp } from './caller.js'
import { type RequestDecision, type RequestDecisions, retryAfterSeconds } from './decisions.js'
import { setKept } from './headers.js'
import { reportedPolicies } from './ietf-drafts.js'
import type { RequestLimitOptions } from './options.js'
import { chain, type Platform, type Problem, type SetHeader } from './platform.js'
import { warn } from './setup-warnings.js'

/** The result of a guard for a request that may not pass, which has been answered by then. */
export interface Denied {
  /** The result of `onDenied`, or of the platform's `send`. */
  readonly answer: unknown
  /** Set if the caller hung up before it could be identified. Nothing was charged, and no response is needed. */
  readonly hungUp?: true
  /** Set if `deny` matched the caller. Nothing was charged, and there is no decision. */
  readonly forbidden?: true
}

export type Responder<Req, Res> = ReturnType<typeof responder<Req, Res>>

/**
 * Makes the functions that answer requests that may not pass: `deny` after a decision, `forbid` for a caller on the list
 * `deny`. A response that has begun is left alone.
 */
export function responder<Req, Res>(
  { onDenied, hideBlocks, denialId }: AnswerOptions<Req, Res>,
  platform: Platform<Req, Res>,
  setHeader: SetHeader<Res>,
  limiter: Limiter,
) {
  /** Whether a late answer is being waited for: one at a time is enough to see that there is none. */
  let isAwaitingAnswer = false
  return { deny, forbid }

  /**
   * Answers a request that `decision` denied: 429, or 503 where the store failed (`degraded`), as the caller has done nothing
   * wrong then. Returns the answer, for the adapter to pass on. `all` are the decisions of all limiters about the request.
   */
  function deny(req: Req, res: Res, decision: Decision, all: RequestDecisions): MaybePromise<Denied> {
    const isDegraded = decision.reason === 'degraded'
    // Asked even if the response has begun, since the denial is counted by its id.
    const id = isDegraded ? undefined : denialId?.(decision)
    if (platform.headersSent(res)) return { answer: undefined }
    setKept(all.kept, res, platform)
    platform.setStatus(res, isDegraded ? CAPACITY_REDUCED.status : QUOTA_EXCEEDED.status)
    setHeader(res, 'Cache-Control', 'no-store')
    const retryAfter = isDegraded ? 1 : retryAfterSeconds(decision) // undefined where no wait helps
    if (retryAfter !== undefined) setHeader(res, 'Retry-After', String(retryAfter))
    if (onDenied) {
      return chain(onDenied(req, res, decision), (result) => {
        const answer = isPending(result) ? undefined : result
        if (!platform.headersSent(res)) sendResult(req, res, answer)
        return { answer }
      })
    }
    setHeader(res, 'Content-Type', PROBLEM_TYPE)
    if (isDegraded) return { answer: platform.send(req, res, CAPACITY_REDUCED, CAPACITY_TEXT) }
    return { answer: sendDenial(req, res, decision, all, retryAfter, id) }
  }

  /** Sends the problem details of a denial: why, when to retry (in seconds), which policies denied, and the denial's `id`. */
  function sendDenial(
    req: Req,
    res: Res,
    decision: Decision,
    all: RequestDecisions,
    retryAfter: number | undefined,
    id: string | undefined,
  ): unknown {
    const isShownBlocked = decision.reason === 'blocked' && !hideBlocks
    const detail = detailOf(retryAfter, isShownBlocked ? 'This client is blocked.' : 'Too many requests.')
    const names = violatedPolicies(decision, all, hideBlocks ? HIDDEN : VIOLATIONS)
    const problem = problemOf(isShownBlocked ? BLOCKED : QUOTA_EXCEEDED, detail, names)
    // The same as JSON, put together from parts: JSON.stringify takes longer.
    const text = `${isShownBlocked ? BLOCKED_TEXT : QUOTA_TEXT}"detail":"${detail}","violated-policies":${listText(names)}}`
    if (id === undefined) return platform.send(req, res, problem, text)
    const instance = `urn:sluice:denial:${id}`
    const textWithId = `${text.slice(0, -1)},"instance":${JSON.stringify(instance)}}`
    return platform.send(req, res, { ...problem, instance }, textWithId)
  }

  /**
   * Sends the body that `onDenied` has returned, by the platform's `sendResult` if it has one. There is no body if the result
   * is undefined, the response itself or a stream: `onDenied` may then answer later, by a timer or a file.
   */
  function sendResult(req: Req, res: Res, result: unknown): void {
    const isStream = typeof Object(result).on === 'function'
    if (result !== undefined && result !== res && !isStream) return platform.sendResult?.(res, result)
    if (platform.answersLate && !isAwaitingAnswer) warnIfUnanswered(req, res)
  }

  /** Warns if the response has not begun in a second, though the caller has not hung up. */
  function warnIfUnanswered(req: Req, res: Res): void {
    isAwaitingAnswer = true
    let hasHungUp = false
    platform.onHungUp?.(req, res, () => void (hasHungUp = true))
    const timer: Partial<NodeJS.Timeout> = setTimeout(() => {
      isAwaitingAnswer = false
      if (!hasHungUp && !platform.headersSent(res)) warn(limiter, 'ANSWER_MISSING')
    }, 1000)
    timer.unref?.()
  }

  /** Answers 403 to a caller on the list `deny`, unless the response has begun. Nothing was charged, and there is no decision. */
  function forbid(req: Req, res: Res): Denied {
    if (platform.headersSent(res)) return { answer: undefined, forbidden: true }
    platform.setStatus(res, FORBIDDEN.status)
    platform.setHeader(res, 'Cache-Control', 'no-store')
    platform.setHeader(res, 'Content-Type', PROBLEM_TYPE)
    return { answer: platform.send(req, res, FORBIDDEN, FORBIDDEN_TEXT), forbidden: true }
  }
}

type AnswerOptions<Req, Res> = Pick<RequestLimitOptions<Req, Res>, 'onDenied' | 'hideBlocks' | 'denialId'>

/** The type of problem details. */
export const PROBLEM_TYPE = 'application/problem+json'

const TYPES = 'https://iana.org/assignments/http-problem-types'

const QUOTA_EXCEEDED = { type: `${TYPES}#quota-exceeded`, title: 'Quota Exceeded', status: 429 }

/** The problem for a key that `block` or a penalty has blocked. */
const BLOCKED = { type: `${TYPES}#abnormal-usage-detected`, title: 'Abnormal Usage Detected', status: 429 }

/** The part that a denial begins with, up to its last comma: the details need no escapes. */
const [QUOTA_TEXT, BLOCKED_TEXT] = [QUOTA_EXCEEDED, BLOCKED].map(
  (about) => `${JSON.stringify(about).slice(0, -1)},`,
)

/**
 * The problem details of a denial: the sentence `detail` for people, and the names of the policies that denied
 * it. Each member is written out, because with a spread V8 takes a microsecond and not 30 ns.
 */
function problemOf(
  { type, title, status }: typeof BLOCKED,
  detail: string,
  names: readonly string[],
): Problem {
  return { type, title, status, detail, 'violated-policies': names }
}

/** Whether `onDenied` has returned no answer but what comes of preparing a later one: a timer, or the length of a queue. */
function isPending(result: unknown): boolean {
  return (
    typeof result === 'number' || typeof result === 'boolean' || typeof Object(result).hasRef === 'function'
  )
}

const CAPACITY_REDUCED = {
  type: `${TYPES}#temporary-reduced-capacity`,
  title: 'Temporary Reduced Capacity',
  status: 503,
  detail: 'Requests cannot be counted for now. Try again in 1 second.',
} satisfies Problem

const CAPACITY_TEXT = JSON.stringify(CAPACITY_REDUCED)

/** The response to a caller in `deny`. */
const FORBIDDEN = {
  type: 'about:blank',
  title: 'Forbidden',
  status: 403,
  detail: 'Requests from this client are not accepted.',
} satisfies Problem

const FORBIDDEN_TEXT = JSON.stringify(FORBIDDEN)

/** The sentence for people in the answer. `retryAfter` is in seconds; undefined if the request costs more than the whole quota. */
function detailOf(retryAfter: number | undefined, why: string): string {
  if (retryAfter === undefined) return 'This request takes more than the quota ever allows at once.'
  return `${why} Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
}

/**
 * The names of the policies that denied a request, as the RateLimit headers show them, for `violated-policies` of the
 * answer. None for a request that was denied because its key is blocked or paused, or because the store failed. A limiter
 * with one policy is listed by its own name; this usual case is answered first, without the list of all policies.
 */
function violatedPolicies(
  denied: Decision,
  all: readonly RequestDecision[],
  violations: Reasons,
): readonly string[] {
  if (all.length === 1 && policiesOf(denied).length === 1)
    return violations.has(denied.reason) ? [denied.limiter] : []
  return reportedPolicies(all)
    .filter(({ decision, state }) => violations.has(decision.reason) && state.retryAfterMs > 0)
    .map(({ name }) => name)
}

type Reasons = ReadonlySet<Decision['reason']>

const VIOLATIONS: Reasons = new Set(['limit', 'cost'])

/** Where blocks are hidden. */
const HIDDEN: Reasons = new Set(['limit', 'cost', 'blocked'])

/** A list of names as JSON. One name without special characters, the usual case, is faster to write without JSON.stringify. */
function listText(names: readonly string[]): string {
  const isPlain = names.length === 1 && PLAIN.test(names[0]!)
  return isPlain ? `["${names[0]!}"]` : JSON.stringify(names)
}

/** Names without characters that JSON escapes, as nearly all are. */
const PLAIN = /^[\w .:/-]*$/

/**
 * The outcome for a request whose caller hung up before it could be identified: it goes no further, and no key is
 * charged. Any other error is thrown on.
 */
export function ifHungUp(error: unknown): Denied {
  if (isHungUp(error)) return { answer: undefined, hungUp: true }
  throw error
}
