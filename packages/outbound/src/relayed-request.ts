import { Attempts } from './attempts.js'
import { isResendable } from './body.js'
import type { Admission } from './admission.js'
import { isNested, nested } from './nested.js'
import type { OutboundSettings } from './options.js'
import { OutboundCall } from './outbound-call.js'
import { RelayController, type RequestController } from './relay-controller.js'
import {
  type Dispatch,
  type DispatchOptions,
  type Handler,
  type HeaderValues,
  replyOf,
  type RequestContext,
  requestOf,
} from './undici-request.js'

/** What the requests of one dispatcher share. */
export interface Relay {
  readonly settings: OutboundSettings
  /** Why new requests fail; undefined while the dispatcher is open. */
  readonly ended: Error | undefined
}

/** One request with all its attempts. Its handler sees only the last response. */
export class RelayedRequest implements Handler {
  readonly #relay: Relay
  readonly #dispatch: Dispatch
  readonly #request: DispatchOptions
  readonly #handler: Handler
  readonly #controller = new RelayController()
  #call!: OutboundCall
  #attempts!: Attempts
  #admission: Admission | undefined
  #history: readonly URL[] = []
  /** Bytes skipped of a response that the handler does not see, as the request is sent again; undefined otherwise. */
  #skipped: number | undefined
  #skipTimer: ReturnType<typeof setTimeout> | undefined

  constructor(relay: Relay, dispatch: Dispatch, request: DispatchOptions, handler: Handler) {
    this.#relay = relay
    this.#dispatch = dispatch
    this.#request = request
    this.#handler = handler
  }

  begin(): void {
    const { settings, ended } = this.#relay
    // Reported before there is a connection, so that a waiting request can be aborted.
    this.#handler.onRequestStart?.(this.#controller, {})
    if (ended) return queueMicrotask(() => this.#fail(ended))
    try {
      this.#call = new OutboundCall(settings, requestOf(this.#request), {
        isResendable: () => isResendable(this.#request.body),
        isNested: isNested(this.#request),
        signal: this.#controller.signal,
      })
      this.#attempts = new Attempts(settings.queue, this.#call.terms)
    } catch (error) {
      return queueMicrotask(() => this.#fail(error as Error))
    }
    void this.#send(this.#attempts.next())
  }

  async #send(next: Promise<Admission>): Promise<void> {
    this.#skipped = undefined
    this.#controller.drop()
    try {
      this.#admission = await next
      this.#dispatch(nested(this.#request), this)
    } catch (error) {
      this.#end()
      this.#fail(error as Error)
    }
  }

  onRequestStart(controller: RequestController, { history = [] }: RequestContext = {}): void {
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
    const { count } = this.#attempts
    if (status >= 200 && this.#attempts.observe(this.#call.verdictOn(reply, count))) {
      this.#skipped = 0
      this.#skipTimer = setTimeout(() => controller.abort(new Error(ENDLESS)), LONGEST_SKIP_MS)
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

  /** Waits before the permit is released; otherwise the queue would be idle for a moment. */
  #sendAgain(): void {
    const next = this.#attempts.next()
    this.#end()
    void this.#send(next)
  }

  #fail(error: Error): void {
    this.#handler.onResponseError?.(this.#controller, error)
  }

  #end(): void {
    clearTimeout(this.#skipTimer)
    this.#admission?.release()
    this.#admission = undefined
  }
}

const ENDLESS = 'a refusal with a body that does not end'
const MOST_SKIPPED = 65_536
const LONGEST_SKIP_MS = 1000
