import { isPromise } from '@sluice/core/internal'
import type { OutboundSettings } from './options.js'
import { forbidsRetry, isFromCache, REFUSALS, statedMs } from './other-side/pause.js'
import { withJson } from './other-side/json.js'
import { PROVIDERS, type StatedLimit } from './other-side/providers.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import type { CallTerms } from './turn.js'
import { type AnswerKind, FINAL, type RefusalKind, type Verdict } from './verdict.js'
import { keysFor } from './waiting-options.js'

/** The facts about a request that only the client knows. */
export interface RequestTraits {
  /** Whether its body can be sent more than once; asked before it is sent again. */
  readonly isResendable: () => boolean
  /** The options that it was called with: `markedNested` marks them where another limited client made the call. */
  readonly options: unknown
  readonly signal: AbortSignal | undefined
}

/** A request under the options of its client: what it asks of the queue, and what its replies mean for it. */
export class LimitedRequest {
  readonly terms: CallTerms

  /**
   * Reads from the options how the request waits (`terms`): its keys, cost and priority, each a value or a function of the request, its
   * tenant (`fair`), among whom turns are shared by their `weight`, and for how long. `traits` are the facts about the request that only
   * its client knows, such as the signal that aborts it.
   */
  constructor(
    readonly settings: OutboundSettings,
    readonly request: OutboundRequest,
    readonly traits: RequestTraits,
  ) {
    const { cost, priority, fair, weight, maxWait, settle } = settings
    const tenant = fair?.(request)
    this.terms = {
      keys: keysOf(settings, request),
      cost: typeof cost === 'function' ? cost(request) : cost,
      priority: typeof priority === 'function' ? priority(request) : priority,
      tenant,
      weight: tenant === undefined ? 1 : (weight?.(tenant) ?? 1),
      maxWaitMs: maxWait,
      signal: traits.signal,
      settle,
    }
  }

  /**
   * Whether another attempt may follow a refusal: the client makes retries, and its option `isRetryable` allows one of this
   * request. A client within another limited client (`isNested`) leaves retries to the outer one.
   */
  get isRetryable(): boolean {
    const { retries, isRetryable } = this.settings
    return retries > 0 && !isNested(this.traits.options) && isRetryable(this.request)
  }

  /**
   * Judges a reply to an attempt (counted from 1): whether it refused the call, for how long the key pauses, and whether the call
   * is sent again. The hooks `isRefusal` and `pauseOf` and the reader of a `provider` may read the body, by `readJson`; then the
   * verdict may be a promise.
   */
  verdictOn(bare: OutboundReply, attempt: number, readJson: () => unknown): Verdict | Promise<Verdict> {
    const { isRefusal, pauseOf, provider, readBody } = this.settings
    if (!isRefusal && !pauseOf && !provider) return this.#verdict(bare, attempt, NO_FINDINGS)
    const reply = withJson(bare, readJson, readBody === 'all' || provider === 'shopify')
    const refusal = isRefusal?.({ reply })
    const pauseMs = pauseOf?.({ reply })
    const stated = provider && PROVIDERS[provider](reply)
    if (isPromise(refusal) || isPromise(pauseMs) || stated) {
      return Promise.all([refusal, pauseMs, stated]).then((found) => this.#verdict(reply, attempt, found))
    }
    return this.#verdict(reply, attempt, [refusal, pauseMs, undefined])
  }

  /**
   * Judges a reply by what hooks and the provider's reader found in it. For the pause, the hook `pauseOf` goes before the reader,
   * and the reader before the headers. A refusal is certain by a finding or by its status (429, 503, 529). An error with another
   * status is one only if it asks for a pause (`asksForPause`). A refusal is retried after a short random delay, if it may be.
   */
  #verdict(reply: OutboundReply, attempt: number, [hookRefusal, hookMs, stated]: ReplyFindings): Verdict {
    const { status } = reply
    const finding = hookRefusal || stated?.isRefusal
    if (finding === 'final') return { status, ...FINAL }
    const isSurelyNone = finding === 'none'
    const isSurelyRefusal = finding === true || (!isSurelyNone && REFUSALS.has(status))
    const foundMs = typeof hookMs === 'number' && hookMs >= 0 ? hookMs : stated?.pauseMs
    // The headers of what is no refusal are read as those of a success.
    const replyToRead = isSurelyNone ? { ...reply, status: 200 } : reply
    const pauseMs = foundMs ?? statedMs(replyToRead, isSurelyRefusal)
    const mayBeRefusal = !isSurelyNone && status >= 400
    const isRefusal = isSurelyRefusal || (mayBeRefusal && asksForPause(status, pauseMs, foundMs))
    const again = isRefusal && this.#mayRetry(reply, attempt) ? jitterMs(attempt) : false
    return { answer: answerOf(reply, isRefusal), pauseMs, again, key: this.#keyOf(reply), status }
  }

  /** Whether a request that was refused may be sent once more after this attempt. */
  #mayRetry(reply: OutboundReply, attempt: number): boolean {
    return (
      attempt <= this.settings.retries &&
      this.isRetryable &&
      !forbidsRetry(reply) &&
      this.traits.isResendable()
    )
  }

  /**
   * The key that a reply is about: the first key of the request or, if a redirect led to another `url`, the first key that the
   * options make of that URL. A reply's `url` has no fragment (`#...`), so it is compared with the request's without one.
   */
  #keyOf({ url }: OutboundReply): string {
    const { href, hash } = this.request.url
    const requested = hash === '' ? href : href.slice(0, -hash.length)
    if (!url || url === requested) return this.terms.keys[0]
    const { method } = this.request
    return keysOf(this.settings, {
      url: new URL(url),
      method,
      header: (name) => this.request.header(name),
    })[0]
  }
}

/** The findings in a reply: of the hooks `isRefusal` and `pauseOf`, and of a provider's reader. */
type ReplyFindings = readonly [
  hookRefusal: RefusalKind,
  hookMs: number | undefined,
  stated: StatedLimit | undefined,
]
const NO_FINDINGS: ReplyFindings = [undefined, undefined, undefined]

/**
 * Copies the options of a call and marks the copy: another limited client that is called with it leaves retries to this one
 * (`isNested`). Copies of the copy keep the mark.
 */
export function markedNested<T extends object>(options: T | undefined): T {
  const copy: Record<PropertyKey, unknown> = {}
  // Also the properties that it inherits: a Request has all of its own in its prototype, and fetch takes one as init.
  for (const name in options) copy[name] = options[name]
  return Object.assign(copy, options, { [NESTED]: true })
}

/** Whether these options of a call have the mark of `markedNested`: another limited client made the call, and makes its retries. */
function isNested(options: unknown): boolean {
  return (
    typeof options === 'object' && options !== null && (options as { [NESTED]?: boolean })[NESTED] === true
  )
}

/** Under a registered symbol, because clients of other copies of this package read it too. */
const NESTED: unique symbol = Symbol.for('sluice.outbound.nested') as never

/**
 * The keys of a request by the option `key`, one for each limiter or one for all: by default the origin of its URL. `keysFor`
 * throws if there are more or fewer keys than limiters.
 */
function keysOf(
  { limiter, key }: OutboundSettings,
  request: OutboundRequest,
): readonly [string, ...string[]] {
  if (key === undefined) return [request.url.origin]
  if (!Array.isArray(key)) return [keyOf(key as KeyOption, request)]
  return keysFor(limiter, key.map((option: KeyOption) => keyOf(option, request)) as [string])
}

type KeyOption = string | ((request: OutboundRequest) => string)

/** The key of a request by one item of the option `key`: the same for all requests, or what the function returns. */
function keyOf(key: KeyOption, request: OutboundRequest): string {
  return typeof key === 'function' ? key(request) : key
}

/**
 * Whether an error (a status of 400 or more) asks for a pause, and so counts as a refusal. For a 403, which GitHub sends for its
 * limits, any pause counts (`pauseMs`), also one in the headers. For other errors only one that a hook or the provider's reader
 * has found counts (`foundMs`).
 */
function asksForPause(status: number, pauseMs = 0, foundMs = 0): boolean {
  return status === 403 ? pauseMs > 0 : foundMs > 0
}

/**
 * The kind of an answer by its status. A refusal with 429 or 403 is due to a limit, any other refusal to an overload. An answer
 * that is no refusal was served; but an error of the server (500 or above) and a reply from a cache say nothing about limits.
 */
function answerOf(reply: OutboundReply, isRefusal: boolean): AnswerKind {
  const { status } = reply
  if (isRefusal) return status === 429 || status === 403 ? 'limited' : 'overloaded'
  return status < 500 && !isFromCache(reply) ? 'served' : 'other'
}

/** A random delay in milliseconds, up to 100, 200, 400 ..., so that calls refused together do not come back together. */
function jitterMs(attempt: number): number {
  return Math.random() * 100 * 2 ** (attempt - 1)
}
