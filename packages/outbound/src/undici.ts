import { isResendable } from './body.js'
import type { Call, Reply } from './call.js'
import { Gate, type Visit } from './gate.js'
import type { Turn } from './line.js'
import type { OutboundOptions } from './options.js'
import { Reins, type RequestController } from './reins.js'

/**
 * An interceptor of undici 7 or later whose requests wait for their turn, and that obeys what the other side answers:
 * `new Agent().compose(limitDispatch(options))`. Requests fail with `RateLimitExceededError` where there is no turn
 * within `maxWait`.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitDispatch(options: OutboundOptions): Interceptor {
  const gate = new Gate(options)
  return function limitDispatch(dispatch) {
    const send = dispatch as unknown as Dispatch
    const limited = (request: DispatchOptions, handler: Handler): boolean => {
      void new Delivery(gate, send, request, handler).go()
      return true
    }
    return limited as unknown as typeof dispatch
  }
}

type Interceptor = <D extends (options: never, handler: never) => boolean>(dispatch: D) => D
type Dispatch = (options: DispatchOptions, handler: Handler) => boolean

interface DispatchOptions {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly headers?: unknown
  readonly body?: unknown
}

type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>

/** What undici tells of a request, since version 7. */
interface Handler {
  onRequestStart?(controller: RequestController, context: unknown): void
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

/** One request until its last response. What is sent again is not told to the handler. */
class Delivery implements Handler {
  readonly #dispatch: Dispatch
  readonly #request: DispatchOptions
  readonly #handler: Handler
  readonly #visit: Visit
  readonly #reins = new Reins()
  #turn: Turn | undefined
  /** Bytes of a response that nobody gets to see, because the request is sent again. */
  #skipped: number | undefined

  constructor(gate: Gate, dispatch: Dispatch, request: DispatchOptions, handler: Handler) {
    this.#dispatch = dispatch
    this.#request = request
    this.#handler = handler
    this.#visit = gate.visit(callOf(request), isResendable(request.body), this.#reins.signal)
    // Before there is a connection, so that a request that waits can be aborted.
    handler.onRequestStart?.(this.#reins, {})
  }

  async go(): Promise<void> {
    this.#skipped = undefined
    this.#reins.drop()
    try {
      this.#turn = await this.#visit.turn()
      this.#dispatch(this.#request, this)
    } catch (error) {
      this.#end()
      this.#handler.onResponseError?.(this.#reins, error as Error)
    }
  }

  onRequestStart(controller: RequestController): void {
    this.#reins.take(controller)
  }

  onRequestUpgrade(_: RequestController, status: number, headers: HeaderValues, socket: unknown): void {
    this.#end()
    this.#handler.onRequestUpgrade?.(this.#reins, status, headers, socket)
  }

  onResponseStart(_: RequestController, status: number, headers: HeaderValues, message?: string): void {
    if (status >= 200 && this.#visit.heed(replyOf(status, headers))) this.#skipped = 0
    else this.#handler.onResponseStart?.(this.#reins, status, headers, message)
  }

  onResponseData(controller: RequestController, chunk: Uint8Array): void {
    if (this.#skipped === undefined) return this.#handler.onResponseData?.(this.#reins, chunk)
    this.#skipped += chunk.byteLength
    if (this.#skipped > MOST_SKIPPED) controller.abort(new Error('a refusal with a body without end'))
  }

  onResponseEnd(_: RequestController, trailers: HeaderValues): void {
    this.#end()
    if (this.#skipped === undefined) this.#handler.onResponseEnd?.(this.#reins, trailers)
    else void this.go()
  }

  onResponseError(_: RequestController, error: Error): void {
    this.#end()
    if (this.#skipped === undefined) this.#handler.onResponseError?.(this.#reins, error)
    else void this.go()
  }

  #end(): void {
    this.#turn?.release()
    this.#turn = undefined
  }
}

const MOST_SKIPPED = 65_536
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

function replyOf(status: number, headers: HeaderValues): Reply {
  return {
    status,
    header(name) {
      const value = headers[name]
      return typeof value === 'string' || value === undefined ? value : value.join(', ')
    },
  }
}
