import { FINAL } from './attempt.js'
import { type AxiosAddress, urlOf } from './axios-url.js'
import { isResendable } from './body.js'
import type { Call, Reply } from './call.js'
import type { Outcome } from './task.js'
import { remember } from './decision-of.js'
import type { Turn } from './key-queue.js'
import { isNested, nested } from './nested.js'
import { type OutboundOptions, settingsOf } from './options.js'
import { OutboundCall } from './outbound-call.js'
import { discard, isNodeStream, observed } from './response-end.js'

/** The parts of axios that are used, whatever its version. */
interface Config extends AxiosAddress {
  readonly method?: string
  readonly headers?: unknown
  readonly data?: unknown
  readonly signal?: unknown
  readonly cancelToken?: CancelToken
}

interface CancelToken {
  readonly reason?: unknown
  subscribe(listener: (reason: unknown) => void): void
  unsubscribe(listener: (reason: unknown) => void): void
}

interface AxiosReply {
  readonly status: number
  readonly headers: unknown
  data: unknown
  readonly request?: unknown
  config?: unknown
}

/** axios rejects for a status that `validateStatus` refuses, with the response in the error. */
interface Answer {
  readonly reply: AxiosReply
  readonly failure?: Error
}

/**
 * An adapter of axios whose calls wait for their turn, and that obeys what the other side answers:
 * `axios.create({ adapter: limitAxios(axios.getAdapter('http'), options) })`. It rejects with `RateLimitExceededError`
 * where there is no turn within `maxWait`, and else as the adapter does that it is made from. With a semaphore, a call
 * with `responseType: 'stream'` is under way until the stream ends.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitAxios<A extends (config: never) => Promise<unknown>>(
  adapter: A,
  options: OutboundOptions,
): A {
  const settings = settingsOf(options)
  const limited = async (config: Config): Promise<AxiosReply> => {
    const cancelling = new Cancelling(config)
    try {
      const call = new OutboundCall(settings, callOf(config), {
        isResendable: () => isResendable(config.data),
        isNested: isNested(config),
        signal: cancelling.signal,
      })
      const judge = (outcome: Outcome<Answer>, times: number) =>
        'value' in outcome ? call.verdictOn(replyOf(outcome.value.reply), times) : FINAL
      const { reply, failure } = await settings.queue.run<Answer>(call.terms, {
        start: () => answerOf(adapter(nested(config) as never) as Promise<AxiosReply>, config),
        judge,
        deliver(answer, turn) {
          remember(answer.reply, turn.decision)
          releaseAtEnd(answer.reply, turn)
          return answer
        },
        discard: (answer) => discardStream(answer.reply.data),
      })
      if (failure) throw failure
      return reply
    } finally {
      cancelling.end()
    }
  }
  return limited as unknown as A
}

/** What comes shows the config of the caller, who may use it again, and not the one with the mark. */
async function answerOf(sent: Promise<AxiosReply>, config: Config): Promise<Answer> {
  try {
    const reply = await sent
    reply.config = config
    return { reply }
  } catch (failure) {
    const error = failure as Error & { config?: unknown; readonly response?: AxiosReply }
    if (error.config !== undefined) error.config = config
    if (!error.response) throw error
    error.response.config = config
    return { reply: error.response, failure: error }
  }
}

/** The signal of a call, which its CancelToken aborts too. */
class Cancelling {
  readonly signal: AbortSignal | undefined
  readonly #token: CancelToken | undefined
  readonly #controller = new AbortController()
  readonly #cancel = (reason: unknown): void => this.#controller.abort(reason)

  constructor({ signal, cancelToken }: Config) {
    const own = signal as AbortSignal | undefined
    this.#token = cancelToken
    cancelToken?.subscribe(this.#cancel)
    this.signal = !cancelToken
      ? own
      : own
        ? AbortSignal.any([own, this.#controller.signal])
        : this.#controller.signal
  }

  end(): void {
    this.#token?.unsubscribe(this.#cancel)
  }
}

function releaseAtEnd(reply: AxiosReply, { release }: Turn): void {
  const { data } = reply
  if (isWebStream(data)) reply.data = observed(data, release)
  else if (isNodeStream(data) && data.destroyed !== true) data.once('close', release)
  else release()
}

function discardStream(data: unknown): void {
  if (isWebStream(data) || isNodeStream(data)) discard(data)
}

function isWebStream(data: unknown): data is ReadableStream<Uint8Array> {
  return data instanceof ReadableStream
}

function callOf(config: Config): Call {
  const { method = 'get', headers } = config
  return { url: urlOf(config), method: method.toUpperCase(), header: (name) => headerOf(headers, name) }
}

/** The http adapter reports the address that answered, that of fetch does not. */
function replyOf({ status, headers, request }: AxiosReply): Reply {
  const url = (request as { readonly res?: { readonly responseUrl?: string } } | undefined)?.res?.responseUrl
  return { status, url, header: (name) => headerOf(headers, name) }
}

function headerOf(headers: unknown, name: string): string | undefined {
  const { get } = (headers ?? {}) as { get?: (name: string) => unknown }
  const value =
    typeof get === 'function' ? get.call(headers, name) : (headers as Record<string, unknown>)?.[name]
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : undefined
}
