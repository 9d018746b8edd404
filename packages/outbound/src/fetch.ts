import { FINAL } from './attempt.js'
import { isResendable, KeptBody } from './body.js'
import type { Call, Reply } from './call.js'
import { remember } from './decision-of.js'
import { isNested, nested } from './nested.js'
import { type OutboundOptions, type Settings, settingsOf } from './options.js'
import { OutboundCall } from './outbound-call.js'
import { discard, untilEnd } from './response-end.js'

type Fetch = typeof globalThis.fetch
type Input = Parameters<Fetch>[0]
type Init = Parameters<Fetch>[1]

/** A fetch with types of its own: that of the undici package, for example. */
// oxlint-disable-next-line typescript/no-explicit-any
type OtherFetch = (input: any, init?: any) => Promise<{ readonly status: number; readonly headers: object }>

/**
 * A `fetch` whose calls wait for their turn, and that obeys what the other side answers. It rejects with
 * `RateLimitExceededError` where there is no turn within `maxWait`, and else as the fetch does that it is made from.
 * With a semaphore, a call is under way until its body has been read.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch
export function limitFetch<F extends OtherFetch>(fetch: F, options: OutboundOptions): F
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch {
  const settings = settingsOf(options)
  return async function limitedFetch(input, init) {
    const request = new FetchRequest(settings, input, init)
    try {
      return await settings.queue.run<Response>(request.call.terms, {
        start: () => request.send(fetch),
        judge: (outcome, times) =>
          'value' in outcome ? request.call.verdictOn(replyOf(outcome.value), times) : FINAL,
        deliver(response, turn) {
          if (!settings.isCounted) turn.release()
          const whole = settings.isCounted ? untilEnd(response, turn.release) : response
          remember(whole, turn.decision, response)
          return whole
        },
        discard: (response) => discard(response.body),
      })
    } finally {
      request.end()
    }
  }
}

/** What a fetch was asked for, as often as it is sent. */
class FetchRequest {
  readonly call: OutboundCall
  readonly #input: Input
  readonly #init: Init
  readonly #request: Request | undefined
  #kept: KeptBody | undefined
  #times = 0

  constructor(settings: Settings, input: Input, init: Init) {
    this.#input = input
    this.#init = init
    this.#request = typeof input === 'object' && 'headers' in input ? input : undefined
    this.call = new OutboundCall(settings, callOf(input, this.#request, init), {
      isResendable: () => isResendable(this.#body) || this.#kept?.bytes !== undefined,
      isNested: isNested(init),
      signal: init?.signal ?? this.#request?.signal,
    })
  }

  send(fetch: Fetch): Promise<Response> {
    const init = nested(this.#init)
    if (this.#times++ > 0 && this.#kept?.bytes) return fetch(this.#input, { ...init, body: this.#kept.bytes })
    if (this.#request && !init.body && isWebStream(this.#request.body) && this.call.mayRepeat) {
      this.#kept = new KeptBody(this.#request.clone().body!)
    }
    return fetch(this.#input, init)
  }

  end(): void {
    this.#kept?.drop()
  }

  get #body(): unknown {
    return this.#init?.body ?? this.#request?.body
  }
}

function isWebStream(body: unknown): body is ReadableStream {
  return typeof (body as { getReader?: unknown } | null | undefined)?.getReader === 'function'
}

function callOf(input: Input, request: Request | undefined, init: Init): Call {
  return {
    url: new URL(request ? request.url : input),
    method: (init?.method ?? request?.method ?? 'GET').toUpperCase(),
    header: (name) => new Headers(init?.headers ?? request?.headers).get(name) ?? undefined,
  }
}

function replyOf({ status, url, headers }: Response): Reply {
  return { status, url, header: (name) => headers.get(name) ?? undefined }
}
