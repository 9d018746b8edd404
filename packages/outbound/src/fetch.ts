import { isResendable, KeptBody } from './body.js'
import { remember } from './decision-of.js'
import { isNested, nested } from './nested.js'
import { type OutboundOptions, type OutboundSettings, settingsOf } from './options.js'
import { OutboundCall } from './outbound-call.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import { discard, untilEnd } from './response-end.js'
import { runTask } from './run-task.js'
import { FINAL } from './task.js'

type Fetch = typeof globalThis.fetch
type Input = Parameters<Fetch>[0]
type Init = Parameters<Fetch>[1]

/** A fetch with types of its own, such as that of the undici package. */
// oxlint-disable-next-line typescript/no-explicit-any
type OtherFetch = (input: any, init?: any) => Promise<{ readonly status: number; readonly headers: object }>

/**
 * Makes a `fetch` whose calls wait for their turn, and which obeys the limits that replies report. It rejects with
 * `RateLimitExceededError` if there is no turn within `maxWait`, and otherwise as the given fetch does. With a semaphore, a
 * call is under way until its body has been read.
 * @example
 * const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
 * const limitedFetch = limitFetch(fetch, { limiter })
 * const response = await limitedFetch('https://api.example.com/orders')
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch
export function limitFetch<F extends OtherFetch>(fetch: F, options: OutboundOptions): F
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch {
  const settings = settingsOf(options)
  return async function limitedFetch(input, init) {
    const request = new FetchRequest(settings, input, init)
    try {
      return await runTask<Response>(settings.queue, request.call.terms, {
        start: () => request.send(fetch),
        judge: (outcome, attempt) =>
          'value' in outcome ? request.call.verdictOn(replyOf(outcome.value), attempt) : FINAL,
        deliver(response, { decision, release }) {
          if (!settings.isCounted) release()
          const whole = settings.isCounted ? untilEnd(response, release) : response
          remember(whole, decision, response)
          return whole
        },
        discard: (response) => discard(response.body),
      })
    } finally {
      request.end()
    }
  }
}

/** The arguments of one fetch, which may be sent several times. */
class FetchRequest {
  readonly call: OutboundCall
  readonly #input: Input
  readonly #init: Init
  readonly #request: Request | undefined
  #kept: KeptBody | undefined
  #times = 0

  constructor(settings: OutboundSettings, input: Input, init: Init) {
    this.#input = input
    this.#init = init
    this.#request = typeof input === 'object' && 'headers' in input ? input : undefined
    this.call = new OutboundCall(settings, requestOf(input, this.#request, init), {
      isResendable: () => isResendable(this.#body) || this.#kept?.bytes !== undefined,
      isNested: isNested(init),
      signal: init?.signal ?? this.#request?.signal,
    })
  }

  send(fetch: Fetch): Promise<Response> {
    const init = nested(this.#init)
    if (this.#times++ > 0 && this.#kept?.bytes) return fetch(this.#input, { ...init, body: this.#kept.bytes })
    const isOwn = init.body === undefined || init.body === null
    if (this.#request && isOwn && isWebStream(this.#request.body) && this.call.isRetryable) {
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

function requestOf(input: Input, request: Request | undefined, init: Init): OutboundRequest {
  return {
    url: new URL(request ? request.url : input),
    method: (init?.method ?? request?.method ?? 'GET').toUpperCase(),
    header: (name) => new Headers(init?.headers ?? request?.headers).get(name) ?? undefined,
  }
}

function replyOf({ status, url, headers }: Response): OutboundReply {
  return { status, url, header: (name) => headers.get(name) ?? undefined }
}
