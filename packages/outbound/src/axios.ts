import { type AxiosUrlOptions, urlOf } from './axios-url.js'
import { isResendable } from './body.js'
import { remember } from './decisions.js'
import { clientOf, type LimitedClient } from './limited-client.js'
import { LimitedRequest, markedNested } from './limited-request.js'
import { checkGiven, type OutboundOptions, type OutboundSettings, settingsOf } from './options.js'
import { parsed } from './other-side/json.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import { BodyEnd } from './settle.js'
import { discard, isNodeStream, isWebStream, observed, type Ended } from './response-end.js'

/** The parts of axios that are used, which all its versions have. */
interface AxiosConfig extends AxiosUrlOptions {
  readonly method?: string
  readonly headers?: unknown
  readonly data?: unknown
  readonly signal?: AbortSignal
  readonly cancelToken?: CancelToken
}

interface CancelToken {
  readonly reason?: unknown
  subscribe(listener: (reason: unknown) => void): void
  unsubscribe(listener: (reason: unknown) => void): void
}

interface AxiosResponse {
  readonly status: number
  readonly headers: unknown
  data: unknown
  readonly request?: unknown
  config?: unknown
}

/** If `validateStatus` refuses the status, axios rejects with a `failure` that holds the response. */
interface AxiosOutcome {
  readonly response: AxiosResponse
  readonly failure?: Error
}

/**
 * Makes an axios adapter whose calls wait for their turn, and which obeys the limits that replies report. It rejects with
 * `RateLimitExceededError` if there is no turn within `maxWait`, and otherwise as the given adapter does. With a semaphore,
 * a call with `responseType: 'stream'` is under way until the stream ends, or the call is rejected.
 * @example
 * const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
 * const client = axios.create({ adapter: limitAxios(axios.getAdapter('http'), { limiter }) })
 * const { data } = await client.get('https://api.example.com/orders')
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitAxios<A extends (config: never) => Promise<unknown>>(
  adapter: A,
  options: OutboundOptions,
): A & LimitedClient {
  // The default adapter of axios is a list of names, which axios alone can resolve.
  checkGiven(
    typeof adapter === 'function',
    "limitAxios takes an adapter such as axios.getAdapter('http')",
    adapter,
  )
  const settings = settingsOf(options, 'limitAxios')
  const limited = async (config: AxiosConfig): Promise<AxiosResponse> => {
    const { cancelToken } = config
    // The older way to cancel an axios call. Its token becomes an abort signal, beside that of the call.
    const cancelled = new AbortController()
    const cancel = (reason: unknown): void => cancelled.abort(reason)
    cancelToken?.subscribe(cancel)
    const signals = [cancelToken && cancelled.signal, config.signal].filter((each) => each !== undefined)
    try {
      const request = new LimitedRequest(settings, requestOf(config), {
        isResendable: () => isResendable(config.data),
        options: config,
        signal: signals.length > 1 ? AbortSignal.any(signals) : signals[0],
      })
      const attempt = () => adapter(markedNested(config) as never) as Promise<AxiosResponse>
      return await sendInTurn(settings, request, () => outcomeOf(attempt(), config))
    } finally {
      cancelToken?.unsubscribe(cancel)
    }
  }
  return Object.assign(limited as unknown as A, clientOf(settings.queue))
}

/**
 * Sends a request by `start` when it is its turn, and again for each retry, and returns the response. The call ends when the body,
 * if it is a stream, has been read. The queue judges each response, so an error that axios made of its status is thrown last.
 */
async function sendInTurn(
  { queue, settle }: OutboundSettings,
  request: LimitedRequest,
  start: () => Promise<AxiosOutcome>,
): Promise<AxiosResponse> {
  const { response, failure } = await queue.run<AxiosOutcome>(request.terms, {
    start,
    judge: (outcome, attempt) =>
      request.verdictOn(replyOf(outcome.response), attempt, () => jsonIn(outcome.response.data)),
    deliver(outcome, turn) {
      remember(outcome.response, turn.decisions)
      const body = new BodyEnd(settle, replyOf(outcome.response))
      releaseAtEnd(outcome, (isWhole) => turn.returned(body.used(isWhole)), body.add)
      return outcome
    },
    discard: (outcome) => discardStream(outcome.response.data),
  })
  if (failure) throw failure
  return response
}

/**
 * Resolves with the response of an adapter's call. If axios rejected because of the response's status, `failure` is that error.
 * Response and error get the caller's `config` back, as the adapter got a copy of it. Rejects if there was no response.
 */
async function outcomeOf(sent: Promise<AxiosResponse>, config: AxiosConfig): Promise<AxiosOutcome> {
  try {
    const response = await sent
    // oxlint-disable-next-line sluice/own-fields -- axios's own object, in which callers look for their config
    response.config = config
    return { response }
  } catch (failure) {
    const error = failure as Error & { config?: unknown; readonly response?: AxiosResponse }
    // oxlint-disable-next-line sluice/own-fields -- as above
    if (error.config !== undefined) error.config = config
    if (!error.response) throw error
    // oxlint-disable-next-line sluice/own-fields -- as above
    error.response.config = config
    return { response: error.response, failure: error }
  }
}

/**
 * Calls `release` when the response's body has ended, with whether all of it has arrived: for a stream when it has been read or
 * dropped, otherwise at once. `seen` gets a body of text, or the pieces of a web stream.
 */
function releaseAtEnd(
  { response, failure }: AxiosOutcome,
  release: Ended,
  seen: (piece: Uint8Array | string) => void,
): void {
  const { data } = response
  if (typeof data === 'string') seen(data)
  // Callers look at a failure, and leave its stream unread.
  if (failure) release(!isWebStream(data) && !isNodeStream(data))
  // oxlint-disable-next-line sluice/own-fields -- axios's own object, whose body is read through this stream
  else if (isWebStream(data)) response.data = observed(data, release, seen)
  else if (isNodeStream(data) && data.destroyed !== true)
    data.once('close', () => release(data.readableEnded === true))
  else release(true)
}

/** Cancels a response body that is a stream, as the caller never gets it. */
function discardStream(data: unknown): void {
  if (isWebStream(data) || isNodeStream(data)) discard(data)
}

/** The request of an axios call, in the form in which the functions among a client's options get it, such as `key` and `cost`. */
function requestOf(config: AxiosConfig): OutboundRequest {
  const { method = 'get', headers } = config
  return { url: urlOf(config), method: method.toUpperCase(), header: (name) => headerOf(headers, name) }
}

/** The reply to an axios call. Its URL is that after redirects, which Node's adapter reports. */
function replyOf({ status, headers, request }: AxiosResponse): OutboundReply {
  const url = (request as { readonly res?: { readonly responseUrl?: string } } | undefined)?.res?.responseUrl
  // The `Headers` of fetch show no names as properties: they are asked for each name that may say something.
  const names = Object.keys(headers ?? {})
  return {
    status,
    url,
    header: (name) => headerOf(headers, name),
    ...(names.length > 0 && { names: () => names }),
  }
}

/** The JSON in a response body; undefined if the body is no JSON, or a stream, which is left for the caller, who asked for it. */
function jsonIn(data: unknown): unknown {
  return isWebStream(data) || isNodeStream(data) ? undefined : parsed(data)
}

/** A header of a request or response, whether its headers are an object with `get` or a plain one. */
function headerOf(headers: unknown, name: string): string | undefined {
  const { get } = (headers ?? {}) as { get?: (name: string) => unknown }
  const value =
    typeof get === 'function' ? get.call(headers, name) : (headers as Record<string, unknown>)?.[name]
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : undefined
}
