import type { Terms, Verdict } from './attempt.js'
import type { Call, Reply } from './call.js'
import type { Settings } from './options.js'
import { forbidsRetry, isRefusal, pauseMs } from './other-side/pause.js'

/** What is known of a request besides what its settings see. */
export interface Circumstances {
  /** Whether its body can be sent more than once; asked when it is to be sent again. */
  readonly isResendable: () => boolean
  /** Whether another limited client made the call, which repeats it then: so each time it passes all limits. */
  readonly isNested: boolean
  readonly signal: AbortSignal | undefined
}

/** A request to the other side: what it asks of the queue, and what its replies ask for. */
export class OutboundCall {
  readonly terms: Terms
  readonly #settings: Settings
  readonly #call: Call
  readonly #circumstances: Circumstances

  constructor(settings: Settings, call: Call, circumstances: Circumstances) {
    this.#settings = settings
    this.#call = call
    this.#circumstances = circumstances
    const { maxWaitMs } = settings
    this.terms = {
      key: settings.key(call),
      cost: settings.cost(call),
      priority: settings.priority(call),
      maxWaitMs,
      signal: circumstances.signal,
    }
  }

  /** Whether a refusal could be followed by another request. */
  get mayRepeat(): boolean {
    const { retries, isRetryable } = this.#settings
    return !this.#circumstances.isNested && retries > 0 && isRetryable(this.#call)
  }

  /** `times`: how often the request was sent. */
  verdictOn(reply: Reply, times: number): Verdict {
    const { status } = reply
    const own = ownPauseMs(this.#settings.pauseOf({ reply }))
    const asked = own ?? pauseMs(reply)
    const isRefused = isRefusal(reply, asked) || (status >= 400 && own !== undefined && own > 0)
    const again = isRefused && this.#repeats(reply, times) ? jitterMs(times) : false
    return { succeeded: status < 400, pauseMs: asked, again, key: this.#keyOf(reply), status }
  }

  #repeats(reply: Reply, times: number): boolean {
    return (
      times <= this.#settings.retries &&
      this.mayRepeat &&
      !forbidsRetry(reply) &&
      this.#circumstances.isResendable()
    )
  }

  /** After a redirect the pause is for the address that answered. */
  #keyOf({ url }: Reply): string {
    const { href, hash } = this.#call.url
    if (!url || url === (hash === '' ? href : href.slice(0, -hash.length))) return this.terms.key
    return this.#settings.key({ ...withHeaders(this.#call), url: new URL(url) })
  }
}

function withHeaders(call: Call): Call {
  return { url: call.url, method: call.method, header: (name) => call.header(name) }
}

function ownPauseMs(ms: number | undefined): number | undefined {
  return typeof ms === 'number' && ms >= 0 ? ms : undefined
}

/** So that calls which were refused together do not come back together. */
function jitterMs(times: number): number {
  return Math.random() * 100 * 2 ** (times - 1)
}
