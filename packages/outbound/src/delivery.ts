import type { Attempt } from './attempt.js'
import { isResendable } from './body.js'
import type { Turn } from './key-queue.js'
import { isNested, nested } from './nested.js'
import type { Settings } from './options.js'
import { OutboundCall } from './outbound-call.js'
import { RelayController, type RequestController } from './relay-controller.js'
import {
  callOf,
  type Context,
  type Dispatch,
  type DispatchOptions,
  type Handler,
  type HeaderValues,
  replyOf,
} from './undici-request.js'

/** The requests of one dispatcher. */
export interface Relay {
  readonly settings: Settings
  /** Why no request is taken any more. */
  readonly ended: Error | undefined
}

/** One request until its last response. What is sent again is not reported to the handler. */
export class Delivery implements Handler {
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
