import { isResendable, KeptBody } from './body.js'
import { remember } from './decisions.js'
import { clientOf, type LimitedClient } from './limited-client.js'
import { LimitedRequest, markedNested } from './limited-request.js'
import { checkGiven, type OutboundOptions, type OutboundSettings, settingsOf } from './options.js'
import { jsonOf } from './other-side/json.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import { discard, isWebStream, untilEnd } from './response-end.js'
import { BodyEnd } from './settle.js'
import type { Turn } from './turn.js'
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
 * Both forms, for the global `fetch` and for one with another type: checks the options, and returns a function in its place whose calls
 * wait for their turn, with the methods of a limited client (`on`, `setPolicies`). `queue.run` starts each attempt, has the response
 * judged, delivers the last one and discards the others.
 */
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch & LimitedClient {
  checkGiven(typeof fetch === 'function', 'limitFetch takes a function such as fetch', fetch)
  const settings = settingsOf(options, 'limitFetch')
  const deliver = delivererFor(settings)
  return Object.assign(limitedFetch, clientOf(settings.queue))

  /** Calls `fetch` when it is the call's turn, and again at a further turn for each retry. */
  async function limitedFetch(input: Input, init?: Init): Promise<Response> {
    const given = typeof input === 'object' && 'headers' in input ? input : undefined
    /** The body of a `Request` can be read only once: if a retry is possible, up to 64 KiB of a clone are kept, and sent again. */
    let keptBody: KeptBody | undefined
    const request = new LimitedRequest(settings, requestOf(input, given, init), {
      isResendable: () => isResendable(init?.body ?? given?.body) || keptBody?.bytes !== undefined,
      options: init,
      signal: init?.signal ?? given?.signal,
    })
    try {
      return await settings.queue.run<Response>(request.terms, {
        start({ attempt }) {
          const initWithoutRetries = markedNested(init) // a limited client within makes none
          if (attempt > 1 && keptBody?.bytes)
            return fetch(input, { ...initWithoutRetries, body: keptBody.bytes })
          const sendsOwnBody = init?.body === undefined || init.body === null
          if (given && sendsOwnBody && isWebStream(given.body) && request.isRetryable) {
            keptBody = new KeptBody(given.clone().body!)
          }
          return fetch(input, initWithoutRetries)
        },
        judge: (response, attempt) =>
          request.verdictOn(replyOf(response), attempt, () => jsonOf(response.clone().body)),
        deliver,
        discard: (response) => discard(response.body),
      })
    } finally {
      keptBody?.drop()
    }
  }
}

/**
 * Makes the function that hands a response to the caller. With a semaphore or `settle` the response is made anew, and the call keeps
 * its turn, with its permit and its reservation, until the body has been read; otherwise the turn ends at once.
 */
function delivererFor(settings: OutboundSettings): (response: Response, turn: Turn) => Response {
  const { settle } = settings
  const endsWithBody = settle !== undefined || sourcesOf(settings).permits.length > 0
  return (response, turn) => {
    let delivered = response
    if (endsWithBody) {
      const body = new BodyEnd(settle, replyOf(response))
      delivered = untilEnd(response, (isWhole) => turn.returned(body.used(isWhole)), body.add)
    } else turn.returned()
    remember(delivered, turn.decisions, response)
    return delivered
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
