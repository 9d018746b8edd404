/** By this undici lets handlers pause or abort a request. */
export interface RequestController {
  readonly aborted: boolean
  readonly paused: boolean
  readonly reason: Error | null
  readonly rawHeaders?: unknown
  readonly rawTrailers?: unknown
  abort(reason: Error): void
  pause(): void
  resume(): void
}

/** The controller of a relayed request: from before it has a connection until its last response, over all its connections. */
export class RelayController implements RequestController {
  readonly #waiting = new AbortController()
  #connection: RequestController | undefined
  #paused = false

  /** Aborts when `abort` is called, and so ends the wait of the request for its turn. */
  get signal(): AbortSignal {
    return this.#waiting.signal
  }

  /** Whether the request was aborted: by the handler, or on its connection. */
  get aborted(): boolean {
    return this.#waiting.signal.aborted || (this.#connection?.aborted ?? false)
  }

  /** The error with which the request was aborted; null if it was not. */
  get reason(): Error | null {
    return (this.#waiting.signal.reason as Error | undefined) ?? this.#connection?.reason ?? null
  }

  get paused(): boolean {
    return this.#paused
  }

  get rawHeaders(): unknown {
    return this.#connection?.rawHeaders
  }

  get rawTrailers(): unknown {
    return this.#connection?.rawTrailers
  }

  /**
   * Passes abort, pause and resume on to `connection`, undici's controller of the current attempt, from now on. The handler has
   * this one controller for all attempts, also while the request waits, so it may have asked for an abort or a pause before there
   * was a connection: that is passed on at once.
   */
  attach(connection: RequestController): void {
    this.#connection = connection
    if (this.aborted) connection.abort(this.reason!)
    else if (this.#paused) connection.pause()
  }

  /** Forgets the connection, as the request waits again before another attempt. */
  detach(): void {
    this.#connection = undefined
  }

  /** Aborts the request, whether it waits or is on a connection. */
  abort(reason: Error): void {
    this.#waiting.abort(reason)
    this.#connection?.abort(reason)
  }

  /** Pauses the response, also of a connection that comes later. */
  pause(): void {
    this.#paused = true
    this.#connection?.pause()
  }

  /** Ends the pause. */
  resume(): void {
    this.#paused = false
    this.#connection?.resume()
  }
}
