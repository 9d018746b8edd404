import { isResendable, KeptBody } from './body.js'
import { remember } from './decisions.js'
import { clientOf, type LimitedClient } from './limited-client.js'
import { LimitedRequest, nested } from './limited-request.js'
import { checkGiven, type OutboundOptions, settingsOf } from './options.js'
import { jsonOf } from './other-side/json.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import { discard, isWebStream, untilEnd } from './response-end.js'
import { BodyEnd } from './settle.js'
import { sourcesOf } from './waiting-options.js'

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
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch & LimitedClient
export function limitFetch<F extends OtherFetch>(fetch: F, options: OutboundOptions): F & LimitedClient
/*
 * Both forms: checks the options, and returns a function in place of `fetch` whose calls wait for their turn, with the methods
 * of a limited client (`on`, `setPolicies`).
 */
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch & LimitedClient {
  checkGiven(typeof fetch === 'function', 'limitFetch takes a function such as fetch', fetch)
  const settings = settingsOf(options, 'limitFetch')
  const { settle } = settings
  const endsLate = settle !== undefined || sourcesOf(settings).permits.length > 0
  return Object.assign(limitedFetch, clientOf(settings.queue))

  /**
   * Calls `fetch` when it is the call's turn, and again at a further turn for each retry. The body of a `Request` can be read only
   * once: if a retry is possible, up to 64 KiB of it are kept from a clone (`kept`), and sent again.
   */
  async function limitedFetch(input: Input, init?: Init): Promise<Response> {
    const given = typeof input === 'object' && 'headers' in input ? input : undefined
    let kept: KeptBody | undefined
    const request = new LimitedRequest(settings, requestOf(input, given, init), {
      isResendable: () => isResendable(init?.body ?? given?.body) || kept?.bytes !== undefined,
      options: init,
      signal: init?.signal ?? given?.signal,
    })
    try {
      return await settings.queue.run<Response>(request.terms, {
        /** Sends the request, a later attempt the body that was kept. `nested`: a limited client within makes no retries. */
        start({ attempt }) {
          const marked = nested(init)
          if (attempt > 1 && kept?.bytes) return fetch(input, { ...marked, body: kept.bytes })
          const hasBody = marked.body !== undefined && marked.body !== null
          if (given && !hasBody && isWebStream(given.body) && request.isRetryable) {
            kept = new KeptBody(given.clone().body!)
          }
          return fetch(input, marked)
        },
        judge: (response, attempt) =>
          request.verdictOn(replyOf(response), attempt, () => jsonOf(response.clone().body)),
        /**
         * Hands the response to the caller. With a semaphore or `settle` it is made anew, and the call keeps its permit and its
         * reservation until its body has been read.
         */
        deliver(response, turn) {
          let delivered = response
          if (endsLate) {
            const body = new BodyEnd(settle, replyOf(response))
            delivered = untilEnd(response, (isWhole) => turn.returned(body.used(isWhole)), body.add)
          } else turn.returned()
          remember(delivered, turn.decisions, response)
          return delivered
        },
        discard: (response) => discard(response.body),
      })
    } finally {
      kept?.drop()
    }
  }
}

/**
 * The request of a fetch call, in the form in which the functions among a client's options get it, such as `key` and `cost`.
 * `given` is the `Request` that fetch was called with, if any; what `init` says goes before it.
 */
function requestOf(input: Input, given: Request | undefined, init: Init): OutboundRequest {
  return {
    url: new URL(given ? given.url : input),
    method: (init?.method ?? given?.method ?? 'GET').toUpperCase(),
    header: (name) => new Headers(init?.headers ?? given?.headers).get(name) ?? undefined,
  }
}

/** The reply to a fetch call, in the form in which the functions among a client's options get it. */
function replyOf({ status, url, headers }: Response): OutboundReply {
  return { status, url, header: (name) => headers.get(name) ?? undefined, names: () => headers.keys?.() }
}
