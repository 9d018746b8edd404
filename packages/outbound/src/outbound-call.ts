import type { CallTerms } from './call-queue.js'
import type { OutboundSettings } from './options.js'
import { forbidsRetry, isRefusal, pauseMs } from './other-side/pause.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import type { Verdict } from './task.js'
import { checkPriority } from './waiting-options.js'

/** What only the client knows of a request. */
export interface RequestTraits {
  /** Whether its body can be sent more than once; asked before it is sent again. */
  readonly isResendable: () => boolean
  /** Whether another limited client made the call. That client retries it, so that each attempt passes all limits. */
  readonly isNested: boolean
  readonly signal: AbortSignal | undefined
}

/** A call of the other side: what it asks of the queue, and what its replies mean for it. */
export class OutboundCall {
  readonly terms: CallTerms
  readonly #settings: OutboundSettings
  readonly #request: OutboundRequest
  readonly #traits: RequestTraits

  constructor(settings: OutboundSettings, request: OutboundRequest, traits: RequestTraits) {
    this.#settings = settings
    this.#request = request
    this.#traits = traits
    const { maxWaitMs } = settings
    this.terms = {
      key: settings.key(request),
      cost: settings.cost(request),
      priority: checkPriority(settings.priority(request)),
      maxWaitMs,
      signal: traits.signal,
    }
  }

  /** Whether another attempt may follow a refusal. */
  get isRetryable(): boolean {
    const { retries, isRetryable } = this.#settings
    return !this.#traits.isNested && retries > 0 && isRetryable(this.#request)
  }

  /** `attempt` counts from 1. */
  verdictOn(reply: OutboundReply, attempt: number): Verdict {
    const { status } = reply
    const own = ownPauseMs(this.#settings.pauseOf({ reply }))
    const asked = own ?? pauseMs(reply)
    const isRefused = isRefusal(reply, asked) || (status >= 400 && own !== undefined && own > 0)
    const again = isRefused && this.#retries(reply, attempt) ? jitterMs(attempt) : false
    return { succeeded: status < 400, pauseMs: asked, again, key: this.#keyOf(reply), status }
  }

  #retries(reply: OutboundReply, attempt: number): boolean {
    return (
      attempt <= this.#settings.retries &&
      this.isRetryable &&
      !forbidsRetry(reply) &&
      this.#traits.isResendable()
    )
  }

  /** After a redirect the pause is for the address that replied. */
  #keyOf({ url }: OutboundReply): string {
    const { href, hash } = this.#request.url
    if (!url || url === (hash === '' ? href : href.slice(0, -hash.length))) return this.terms.key
    return this.#settings.key({ ...withHeaders(this.#request), url: new URL(url) })
  }
}

function withHeaders(request: OutboundRequest): OutboundRequest {
  return { url: request.url, method: request.method, header: (name) => request.header(name) }
}

function ownPauseMs(ms: number | undefined): number | undefined {
  return typeof ms === 'number' && ms >= 0 ? ms : undefined
}

/** Keeps calls that were refused together from coming back together. */
function jitterMs(attempt: number): number {
  return Math.random() * 100 * 2 ** (attempt - 1)
}
