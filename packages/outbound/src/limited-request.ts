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
  /** The options that it was called with: `nested` marks them where another limited client made the call. */
  readonly options: unknown
  readonly signal: AbortSignal | undefined
}

/** A request under the options of its client: what it asks of the queue, and what its replies mean for it. */
export class LimitedRequest {
  readonly terms: CallTerms

  /**
   * Reads from the options how the request waits: its keys, cost, priority and tenant, each a value or a function of the request.
   * `traits` are the facts about the request that only its client knows.
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
   * Judges a reply: whether it refused the call, for how long the key pauses, and whether the call is sent again. With the
   * options `isRefusal`, `pauseOf` and `provider` the body may be read, by `readJson`, and the verdict may be a promise.
   */
  verdictOn(given: OutboundReply, attempt: number, readJson: () => unknown): Verdict | Promise<Verdict> {
    const { isRefusal, pauseOf, provider, readBody } = this.settings
    const isPlain = !isRefusal && !pauseOf && !provider
    if (isPlain) return this.#verdict(given, attempt, [undefined, undefined, undefined])
    const reply = withJson(given, readJson, readBody === 'all' || provider === 'shopify')
    const named = isRefusal?.({ reply })
    const pauseMs = pauseOf?.({ reply })
    const stated = provider && PROVIDERS[provider](reply)
    if (isPromise(named) || isPromise(pauseMs) || stated) {
      return Promise.all([named, pauseMs, stated]).then((found) => this.#verdict(reply, attempt, found))
    }
    return this.#verdict(reply, attempt, [named, pauseMs, undefined])
  }

  /**
   * Judges a reply by what was found in it. For the pause, the option `pauseOf` goes before the provider's reader, and that
   * before the headers. Beside the statuses 429, 503 and 529, an error that asks for a pause may be a refusal.
   */
  #verdict(reply: OutboundReply, attempt: number, [named, hookMs, stated]: ReplyFindings): Verdict {
    const { status } = reply
    const said = named || stated?.isRefusal
    if (said === 'final') return { status, ...FINAL }
    const isNone = said === 'none'
    const isCertain = said === true || (!isNone && REFUSALS.has(status))
    const readMs = typeof hookMs === 'number' && hookMs >= 0 ? hookMs : stated?.pauseMs
    // The headers of what is no refusal are read as those of a success.
    const pauseMs = readMs ?? statedMs(isNone ? { ...reply, status: 200 } : reply, isCertain)
    const isRefusal = isCertain || (!isNone && status >= 400 && asksForPause(status, pauseMs, readMs))
    const again = isRefusal && this.#retries(reply, attempt) ? jitterMs(attempt) : false
    return { answer: answerOf(reply, isRefusal), pauseMs, again, key: this.#keyOf(reply), status }
  }

  /** Whether a request that was refused may be sent once more after this attempt. */
  #retries(reply: OutboundReply, attempt: number): boolean {
    return (
      attempt <= this.settings.retries &&
      this.isRetryable &&
      !forbidsRetry(reply) &&
      this.traits.isResendable()
    )
  }

  /**
   * The key that a reply is about: the first key of the request, or where a redirect led to another `url`, the first one that the
   * options make of that. A reply's `url` has no fragment (`#...`), so that of the request is not compared.
   */
  #keyOf({ url }: OutboundReply): string {
    const { href, hash } = this.request.url
    if (!url || url === (hash === '' ? href : href.slice(0, -hash.length))) return this.terms.keys[0]
    const { method } = this.request
    return keysOf(this.settings, {
      url: new URL(url),
      method,
      header: (name) => this.request.header(name),
    })[0]
  }
}

/** The findings of hooks and of a provider's reader in a reply. `named`: what the hook `isRefusal` calls it. */
type ReplyFindings = readonly [
  named: RefusalKind,
  hookMs: number | undefined,
  stated: StatedLimit | undefined,
]

/**
 * Copies the options of a call and marks the copy as made by a limited client, for a limited client within (`isNested`). Copies
 * of the copy keep the mark.
 */
export function nested<T extends object>(options: T | undefined): T {
  const copy: Record<PropertyKey, unknown> = {}
  // Also the properties that it inherits: a Request has all of its own in its prototype, and fetch takes one as init.
  for (const name in options) copy[name] = options[name]
  return Object.assign(copy, options, { [NESTED]: true })
}

/** Whether these options of a call have the mark of `nested`: another limited client made the call, and makes its retries. */
function isNested(options: unknown): boolean {
  return (
    typeof options === 'object' && options !== null && (options as { [NESTED]?: boolean })[NESTED] === true
  )
}

/** Under a registered symbol, because clients of other copies of this package read it too. */
const NESTED: unique symbol = Symbol.for('sluice.outbound.nested') as never

/**
 * The keys of a request by the option `key`, one for each limiter or one for all: by default the origin of its URL. `keysFor`
 * throws for a list that is shorter or longer than that of the limiters.
 */
function keysOf(
  { limiter, key }: OutboundSettings,
  request: OutboundRequest,
): readonly [string, ...string[]] {
  if (key === undefined) return [request.url.origin]
  if (!Array.isArray(key)) return [keyOf(key as KeyOption, request)]
  return keysFor(limiter, key.map((each: KeyOption) => keyOf(each, request)) as [string])
}

type KeyOption = string | ((request: OutboundRequest) => string)

/** The key of a request by one setting of the option: the same for all, or what the function returns. */
function keyOf(key: KeyOption, request: OutboundRequest): string {
  return typeof key === 'function' ? key(request) : key
}

/**
 * Whether an error (a status of 400 or more) counts as a refusal because its reply asks for a pause. A 403 has other
 * meanings too, and is one only with a pause in milliseconds, `pauseMs`, as GitHub sends it; any other status if
 * `pauseOf` or the provider's reader has found a pause, `readMs`.
 */
function asksForPause(status: number, pauseMs = 0, readMs = 0): boolean {
  return status === 403 ? pauseMs > 0 : readMs > 0
}

/**
 * The kind of an answer by its status. A refusal with 429 or 403 is due to a limit, and pauses the key at once; any other refusal
 * is due to an overload, and a single one does not. A status of 500 or above that is no refusal says nothing about limits, nor does a cache.
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
