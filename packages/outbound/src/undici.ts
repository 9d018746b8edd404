import type { Attempt } from './attempt.js'
import { isResendable } from './body.js'
import type { Call, Reply } from './call.js'
import type { Turn } from './key-queue.js'
import { isNested, nested } from './nested.js'
import { type OutboundOptions, type Settings, settingsOf } from './options.js'
import { OutboundCall } from './outbound-call.js'
import { RelayController, type RequestController } from './relay-controller.js'

/**
 * An interceptor of undici 7 or later whose requests wait for their turn, and that obeys what the other side answers:
 * `new Agent().compose(limitDispatch(options))`. Requests fail with `RateLimitExceededError` where there is no turn
 * within `maxWait`. An interceptor does not hear of `close()`, which fails the requests that wait then.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitDispatch(options: OutboundOptions): Interceptor
/**
 * The same dispatcher with a limit: `limitDispatch(new Agent(), options)`. Its `close()` lets the requests that wait go
 * out first, and `destroy()` fails them, as with the dispatcher alone.
 */
export function limitDispatch<D extends Dispatcher>(dispatcher: D, options: OutboundOptions): D
export function limitDispatch<D extends Dispatcher>(
  first: D | OutboundOptions,
  options?: OutboundOptions,
): D | Interceptor {
  const relay = new Relay(settingsOf(options ?? (first as OutboundOptions)))
  return options ? withEnd(first as D, relay) : relay.interceptor
}

interface Dispatcher {
  compose(...interceptors: never[]): unknown
  close(): Promise<void>
  destroy(error?: Error | null): Promise<void>
}

type Callback = (error: Error | null, data: null) => void

function withEnd<D extends Dispatcher>(dispatcher: D, relay: Relay): D {
  const composed = (dispatcher.compose as (interceptor: Interceptor) => D)(relay.interceptor)
  const close = async (): Promise<void> => {
    await relay.close()
    await dispatcher.close()
  }
  const destroy = async (error?: Error | null): Promise<void> => {
    relay.destroy(error ?? endError('Destroyed'))
    await dispatcher.destroy(error)
  }
  const ends: Record<PropertyKey, unknown> = {
    close: (callback?: Callback) => calledBack(close(), callback),
    destroy: (error?: Error | Callback | null, callback?: Callback) =>
      typeof error === 'function' ? calledBack(destroy(), error) : calledBack(destroy(error), callback),
  }
  return new Proxy(composed, { get: (target, key) => ends[key] ?? target[key as keyof D] })
}

function calledBack(ended: Promise<void>, callback: Callback | undefined): Promise<void> | undefined {
  if (!callback) return ended
  void report(ended, callback)
  return undefined
}

async function report(ended: Promise<void>, callback: Callback): Promise<void> {
  let failure: Error | null = null
  try {
    await ended
  } catch (error) {
    failure = error as Error
  }
  callback(failure, null)
}

/** The error that undici fails a request with whose dispatcher has ended. */
function endError(how: 'Closed' | 'Destroyed'): Error {
  const error = new Error(`The client is ${how.toLowerCase()}`)
  return Object.assign(error, { name: `Client${how}Error`, code: `UND_ERR_${how.toUpperCase()}` })
}

/** The requests of one dispatcher. */
class Relay {
  readonly settings: Settings
  /** Why no request is taken any more. */
  ended: Error | undefined

  constructor(settings: Settings) {
    this.settings = settings
  }

  get interceptor(): Interceptor {
    return (dispatch) => {
      const send = dispatch as unknown as Dispatch
      const limited = (request: DispatchOptions, handler: Handler): boolean => {
        new Delivery(this, send, request, handler).begin()
        return true
      }
      return limited as unknown as typeof dispatch
    }
  }

  /** Resolves when all requests have been answered. */
  async close(): Promise<void> {
    this.ended ??= endError('Closed')
    await this.settings.queue.onIdle()
  }

  destroy(error: Error): void {
    this.ended = error
    this.settings.queue.refuseAll(() => error)
  }
}

type Interceptor = <D extends (options: never, handler: never) => boolean>(dispatch: D) => D
type Dispatch = (options: DispatchOptions, handler: Handler) => boolean

/** `history`: the addresses that were redirected, the one that answered last. */
interface Context {
  readonly history?: readonly URL[]
}

interface DispatchOptions {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly headers?: unknown
  readonly body?: unknown
}

type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>

/** What undici reports of a request, since version 7. */
interface Handler {
  onRequestStart?(controller: RequestController, context: Context): void
  onRequestUpgrade?(
    controller: RequestController,
    status: number,
    headers: HeaderValues,
    socket: unknown,
  ): void
  onResponseStart?(
    controller: RequestController,
    status: number,
    headers: HeaderValues,
    message?: string,
  ): void
  onResponseData?(controller: RequestController, chunk: Uint8Array): void
  onResponseEnd?(controller: RequestController, trailers: HeaderValues): void
  onResponseError?(controller: RequestController, error: Error): void
}

/** One request until its last response. What is sent again is not reported to the handler. */
class Delivery implements Handler {
  readonly #relay: Relay
  readonly #dispatch: Dispatch
  readonly #request: DispatchOptions
  readonly #handler: Handler
  readonly #controller = new RelayController()
  #call!: OutboundCall
  #attempt!: Attempt
  #turn: Turn | undefined
  #history: readonly URL[] = []
  /** Bytes of a response that the handler does not see, because the request is sent again. */
  #skipped: number | undefined
  #impatience: ReturnType<typeof setTimeout> | undefined

  constructor(relay: Relay, dispatch: Dispatch, request: DispatchOptions, handler: Handler) {
    this.#relay = relay
    this.#dispatch = dispatch
    this.#request = request
    this.#handler = handler
  }

  begin(): void {
    const { settings, ended } = this.#relay
    // Before there is a connection, so that a request that waits can be aborted.
    this.#handler.onRequestStart?.(this.#controller, {})
    if (ended) return queueMicrotask(() => this.#fail(ended))
    try {
      this.#call = new OutboundCall(settings, callOf(this.#request), {
        isResendable: () => isResendable(this.#request.body),
        isNested: isNested(this.#request),
        signal: this.#controller.signal,
      })
      this.#attempt = settings.queue.attempt(this.#call.terms)
    } catch (error) {
      return queueMicrotask(() => this.#fail(error as Error))
    }
    void this.#go(this.#attempt.turn())
  }

  async #go(next: Promise<Turn>): Promise<void> {
    this.#skipped = undefined
    this.#controller.drop()
    try {
      this.#turn = await next
      this.#dispatch(nested(this.#request), this)
    } catch (error) {
      this.#end()
      this.#fail(error as Error)
    }
  }

  onRequestStart(controller: RequestController, { history = [] }: Context = {}): void {
    this.#history = history
    this.#controller.take(controller)
  }

  onRequestUpgrade(_: RequestController, status: number, headers: HeaderValues, socket: unknown): void {
    this.#end()
    this.#handler.onRequestUpgrade?.(this.#controller, status, headers, socket)
  }

  onResponseStart(
    controller: RequestController,
    status: number,
    headers: HeaderValues,
    message?: string,
  ): void {
    const reply = replyOf(status, headers, this.#history.at(-1)?.href)
    if (status >= 200 && this.#attempt.observe(this.#call.verdictOn(reply, this.#attempt.times))) {
      this.#skipped = 0
      this.#impatience = setTimeout(() => controller.abort(new Error(ENDLESS)), LONGEST_SKIP_MS)
    } else this.#handler.onResponseStart?.(this.#controller, status, headers, message)
  }

  onResponseData(controller: RequestController, chunk: Uint8Array): void {
    if (this.#skipped === undefined) return this.#handler.onResponseData?.(this.#controller, chunk)
    this.#skipped += chunk.byteLength
    if (this.#skipped > MOST_SKIPPED) controller.abort(new Error(ENDLESS))
  }

  onResponseEnd(_: RequestController, trailers: HeaderValues): void {
    if (this.#skipped !== undefined) return this.#sendAgain()
    this.#end()
    this.#handler.onResponseEnd?.(this.#controller, trailers)
  }

  onResponseError(_: RequestController, error: Error): void {
    if (this.#skipped !== undefined) return this.#sendAgain()
    this.#end()
    this.#fail(error)
  }

  /** Waits before it gives its place back, or the queue would be idle for a moment. */
  #sendAgain(): void {
    const next = this.#attempt.turn()
    this.#end()
    void this.#go(next)
  }

  #fail(error: Error): void {
    this.#handler.onResponseError?.(this.#controller, error)
  }

  #end(): void {
    clearTimeout(this.#impatience)
    this.#turn?.release()
    this.#turn = undefined
  }
}

const ENDLESS = 'a refusal with a body without end'
const MOST_SKIPPED = 65_536
const LONGEST_SKIP_MS = 1000
/** A `Client` or `Pool` keeps its origin to itself. */
const NOWHERE = 'http://origin.invalid'

function callOf({ origin = NOWHERE, path, method, headers }: DispatchOptions): Call {
  return {
    url: new URL(path, origin),
    method: method.toUpperCase(),
    header: (name) => pairsOf(headers).find(([key]) => key.toLowerCase() === name)?.[1],
  }
}

/** undici takes headers as an object, as pairs, and as a flat list. */
function pairsOf(headers: unknown): readonly (readonly [string, string])[] {
  if (typeof headers !== 'object' || headers === null) return []
  const list: readonly unknown[] = Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : []
  if (typeof list[0] === 'string') {
    return list.flatMap((key, i) => (i % 2 === 0 ? [[String(key), String(list[i + 1])] as const] : []))
  }
  return list.length > 0 ? (list as [string, string][]) : Object.entries(headers as Record<string, string>)
}

function replyOf(status: number, headers: HeaderValues, url: string | undefined): Reply {
  return {
    status,
    url,
    header(name) {
      const value = headers[name]
      return typeof value === 'string' || value === undefined ? value : value.join(', ')
    },
  }
}
