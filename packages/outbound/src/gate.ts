import type { Call, Reply } from './call.js'
import { RateLimitExceededError } from './exceeded.js'
import type { Line, Turn } from './line.js'
import { type OutboundOptions, type Settings, settingsOf } from './options.js'
import { pauseMs } from './other-side/pause.js'
import { type Traffic, trafficOf } from './traffic.js'

/** What all calls of one client pass, whatever the client. */
export class Gate {
  readonly #settings: Settings
  readonly #traffic: Traffic

  /** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
  constructor(options: OutboundOptions) {
    this.#settings = settingsOf(options)
    this.#traffic = trafficOf(this.#settings.limiter, this.#settings.semaphore)
  }

  /** `resendable`: whether the body can be sent more than once. */
  visit(call: Call, resendable: boolean, signal?: AbortSignal): Visit {
    return new Visit(this.#settings, this.#traffic, call, resendable, signal)
  }
}

/** One call on its way through the gate, repetitions included. */
export class Visit {
  readonly #settings: Settings
  readonly #call: Call
  readonly #resendable: boolean
  readonly #signal: AbortSignal | undefined
  readonly #line: Line
  readonly #key: string
  readonly #cost: number
  readonly #priority: number
  readonly #until: number
  #repeated = 0

  constructor(
    settings: Settings,
    traffic: Traffic,
    call: Call,
    resendable: boolean,
    signal: AbortSignal | undefined,
  ) {
    this.#settings = settings
    this.#call = call
    this.#resendable = resendable
    this.#signal = signal
    this.#key = settings.key(call)
    this.#cost = settings.cost(call)
    this.#priority = settings.priority(call)
    this.#line = traffic.line(this.#key)
    this.#until = performance.now() + settings.maxWaitMs
  }

  /**
   * Resolves when the call may go out.
   * @throws {RateLimitExceededError} when there is no turn in time; the signal's reason when it aborts.
   */
  async turn(): Promise<Turn> {
    const start = performance.now()
    const { onEvent, ahead, latenessMs, maxQueue } = this.#settings
    const [key, priority] = [this.#key, this.#priority]
    try {
      this.#signal?.throwIfAborted()
      if (this.#repeated > 0) await sleep(jitterMs(this.#repeated), this.#signal)
      const bounds = { until: this.#until, ahead, latenessMs, maxQueue, signal: this.#signal }
      const terms = { cost: this.#cost, priority, ...bounds }
      const turn = await this.#line.turn(terms)
      const waitMs = Math.round(performance.now() - start)
      if (this.#line.resumed()) onEvent({ type: 'resumed', key })
      if (waitMs > 0) onEvent({ type: 'waited', key, priority, waitMs })
      return turn
    } catch (error) {
      if (error instanceof RateLimitExceededError) {
        onEvent({ type: 'denied', key, priority, reason: error.reason, decision: error.decision })
      }
      throw error
    }
  }

  /** Does what the reply asks for. Returns whether the call is to be sent again, at its next turn. */
  heed(reply: Reply): boolean {
    const { status } = reply
    if (status < 400) this.#line.succeeded()
    const ms = Math.min(pauseMs(reply) ?? this.#line.silentPauseMs(), this.#settings.maxHoldMs)
    if (ms > 0 && this.#line.pause(ms)) {
      this.#settings.onEvent({ type: 'held', key: this.#key, status, holdMs: Math.ceil(ms) })
    }
    return (status === 429 || status === 503) && this.#repeats()
  }

  #repeats(): boolean {
    const { retries, repeatable } = this.#settings
    if (this.#repeated >= retries || !this.#resendable || !repeatable(this.#call)) return false
    if (this.#line.pausedMs > this.#until - performance.now()) return false
    this.#repeated++
    return true
  }
}

/** So that calls which were refused together do not come back together. */
function jitterMs(times: number): number {
  return Math.random() * 100 * 2 ** (times - 1)
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer)
      reject(signal!.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort)
  })
}
