import { inThisContext } from '@sluice/core/internal'
import { isResendable } from './body.js'
import { HeldResponse } from './held-response.js'
import { LimitedRequest, markedNested } from './limited-request.js'
import type { OutboundSettings } from './options.js'
import { RelayController, type RequestController } from './relay-controller.js'
import { BodyEnd, type Used, USED_NOTHING } from './settle.js'
import type { Turn } from './turn.js'
import {
  type Dispatch,
  type DispatchOptions,
  type Handler,
  type HeaderValues,
  replyOf,
  type RequestContext,
  requestOf,
} from './undici-request.js'
import { ACCEPTED, UNANSWERED, type Verdict } from './verdict.js'

/** One request with all its attempts. Its handler sees only the last response. */
export class RelayedRequest implements Handler {
  readonly #controller = new RelayController()
  #request!: LimitedRequest
  /** Of the current attempt, or of the last one while the next waits; undefined before the first. */
  #turn: Turn | undefined
  #history: readonly URL[] = []
  /** The response, while its verdict waits for its body. */
  #held: HeldResponse | undefined
  #body: BodyEnd | undefined
  /** Whether the end of the current attempt is reported. */
  #isJudged = false
  /** Bytes skipped of a response that the handler does not see, as the request is sent again; undefined otherwise. */
  #skipped: number | undefined
  #skipTimer: ReturnType<typeof setTimeout> | undefined
  /**
   * Runs a step of the request: at once, or, if there are hooks or listeners, in its own AsyncLocalStorage context, as undici reports
   * in that of its connection.
   */
  readonly #runInCallersContext: (step: () => void) => void

  /**
   * Takes a request to undici: `options` describe it, `dispatch` sends it when it is its turn, and `handler` gets the response in the
   * end. Hooks and listeners of the user run in the AsyncLocalStorage context of the caller, and not in that of the connection; without
   * any, steps run at once.
   */
  constructor(
    readonly settings: OutboundSettings,
    readonly dispatch: Dispatch,
    readonly options: DispatchOptions,
    readonly handler: Handler,
  ) {
    this.#runInCallersContext =
      settings.hasHooks || settings.queue.events ? inThisContext() : (step) => step()
  }

  /**
   * Begins the wait for the request's turn, after which it is sent. If its dispatcher was closed, the request fails with the error
   * `ended`. Failures are reported in a microtask, when undici's `dispatch` has returned to its caller.
   */
  begin(ended: Error | undefined): void {
    // Reported before there is a connection, so that a waiting request can be aborted.
    this.handler.onRequestStart?.(this.#controller, {})
    this.#send(this.#firstTurn(ended)).catch(() => {})
  }

  /** Waits for the turn of the request's first attempt, and resolves with the turn. Rejects with `ended`, if that is given. */
  async #firstTurn(ended: Error | undefined): Promise<Turn> {
    if (ended) throw ended
    this.#request = new LimitedRequest(this.settings, requestOf(this.options), {
      isResendable: () => isResendable(this.options.body),
      options: this.options,
      signal: this.#controller.signal,
    })
    return this.settings.queue.next(this.#request.terms)
  }

  /**
   * Sends the request, for the first time or again, when its turn has come. If the wait for that fails, so does the request; an abort by
   * the caller meanwhile only ends the wait, as there is no connection then. If the dispatcher throws, as an interceptor may, the
   * attempt has failed.
   */
  async #send(turn: Promise<Turn>): Promise<void> {
    this.#body = this.#skipped = undefined
    this.#controller.detach()
    try {
      this.#turn = await turn
    } catch (error) {
      return this.#fail(error as Error)
    }
    this.#isJudged = false
    try {
      this.settings.queue.events?.started(this.#turn)
      // Marked, another limited client that gets these options leaves retries to this one.
      this.dispatch(markedNested(this.options), this)
    } catch (error) {
      this.onResponseError(this.#controller, error as Error)
    }
  }

  /** Notes the connection of this attempt, and the redirects that led to it. The caller's handler was called by `begin` already. */
  onRequestStart(controller: RequestController, context?: RequestContext | null): void {
    this.#history = context?.history ?? []
    this.#controller.attach(controller)
  }

  /**
   * Passes an upgrade of the connection, to WebSocket for example, on to the caller's handler. The call was served and ends, as
   * the connection is the caller's from then on. undici also reports each reply to CONNECT here: a reply that opened no tunnel
   * (neither 101 nor 2xx) counts as no answer.
   */
  onRequestUpgrade(_: RequestController, status: number, headers: HeaderValues, socket: unknown): void {
    const reply = replyOf(status, headers, this.#history.at(-1)?.href)
    const isOpen = status === 101 || (status >= 200 && status < 300)
    this.#runInCallersContext(() => {
      this.#carryOutVerdict({ ...(isOpen ? ACCEPTED : UNANSWERED), status })
      this.#endTurn(isOpen ? new BodyEnd(this.settings.settle, reply).used(true) : USED_NOTHING)
    })
    this.handler.onRequestUpgrade?.(this.#controller, status, headers, socket)
  }

  /**
   * Decides whether the caller's handler gets this response or the request is sent again. A verdict may have to read the body:
   * until then `#held` keeps all that undici reports. A response that the handler is not to see is skipped: its body is dropped
   * as it arrives, for a second at most. Interim responses (below 200) are passed on.
   */
  onResponseStart(
    controller: RequestController,
    status: number,
    headers: HeaderValues,
    message?: string,
  ): void {
    const pass = (): void => this.handler.onResponseStart?.(this.#controller, status, headers, message)
    if (status < 200) return pass()
    const held = new HeldResponse(controller)
    const reply = replyOf(status, headers, this.#history.at(-1)?.href)
    this.#body = new BodyEnd(this.settings.settle, reply)
    // Carries out the verdict. If the request is to be sent again, the response is skipped, and `#skipped` counts its bytes
    // from now on; otherwise the handler gets it. What was held until now goes the same way.
    const carryOut = (verdict: Verdict): void => {
      if (held.isDropped) return
      this.#held = undefined
      if (this.#carryOutVerdict(verdict)) {
        this.#skipped = 0
        this.#skipTimer = setTimeout(() => controller.abort(new Error(ENDLESS)), LONGEST_SKIP_MS)
      } else {
        pass()
      }
      held.release(this.#controller)
    }
    // Fails the request if the judging has thrown, as a hook may: at once, or by an abort of what still arrives.
    const fail = (error: Error): void => {
      if (held.isDropped) return
      this.#held = undefined
      if (held.hasEnded) this.onResponseError(controller, error)
      else controller.abort(error)
    }
    this.#held = held
    const readJson = (): unknown => held.json(reply.header('content-encoding'))
    this.#runInCallersContext(() => {
      try {
        const verdict = this.#request.verdictOn(reply, this.#turn!.attempt, readJson)
        if ('answer' in verdict) carryOut(verdict)
        else verdict.then(carryOut).catch(fail)
      } catch (error) {
        fail(error as Error)
      }
    })
  }

  /**
   * Takes a piece of the body: keeps it while the verdict is unknown (`#held`), and then passes it on to the handler. If the
   * response is skipped, the piece is dropped; a body of more than 64 KiB is aborted instead.
   */
  onResponseData(controller: RequestController, chunk: Uint8Array): void {
    if (this.#held) return this.#held.data(chunk, () => this.onResponseData(controller, chunk))
    if (this.#skipped === undefined) {
      if (this.#body?.reply.header('content-encoding') === undefined) this.#body?.add(chunk)
      return this.handler.onResponseData?.(this.#controller, chunk)
    }
    this.#skipped += chunk.byteLength
    if (this.#skipped > MOST_SKIPPED) controller.abort(new Error(ENDLESS))
  }

  /**
   * Takes the end of the response: keeps it (`#held`) until the queue has judged the response, and then passes it on to the handler, or
   * sends the request again if the response was skipped as a refusal. The turn ends with what the body, now whole, says was used. The
   * handler knows one controller, which stands for those of all attempts.
   */
  onResponseEnd(controller: RequestController, trailers: HeaderValues): void {
    if (this.#held) return this.#held.end(() => this.onResponseEnd(controller, trailers))
    if (this.#skipped !== undefined) return this.#runInCallersContext(() => this.#sendAgain())
    this.#endTurn(this.#body?.used(true))
    this.handler.onResponseEnd?.(this.#controller, trailers)
  }

  /**
   * Takes the failure of an attempt: keeps it while the verdict is unknown (`#held`), unless the handler itself has aborted, and
   * then passes it on to the handler. If the response was skipped, the failure does not matter: the request is sent again.
   */
  onResponseError(controller: RequestController, error: Error): void {
    const held = this.#held
    const hasHandlerAborted = this.#controller.signal.aborted
    if (held && !hasHandlerAborted) return held.fail(() => this.onResponseError(controller, error))
    this.#runInCallersContext(() => {
      held?.drop()
      this.#held = undefined
      if (this.#skipped !== undefined) return this.#sendAgain()
      if (!this.#isJudged) this.settings.queue.events?.ended(this.#turn!, false, { error })
      this.#endTurn(this.#body?.used(false))
      this.#fail(error)
    })
  }

  /** Has the queue carry out the verdict, and reports the end of the attempt. Returns whether the request is to be sent again. */
  #carryOutVerdict(verdict: Verdict): boolean {
    const { queue } = this.settings
    const again = queue.carryOutVerdict(this.#turn!, verdict)
    this.#isJudged = true
    queue.events?.ended(this.#turn!, again, {})
    return again
  }

  /** Sends the request again at its next turn. That wait begins before this attempt ends; otherwise the queue would be idle. */
  #sendAgain(): void {
    const turn = this.settings.queue.next(this.#request.terms, this.#turn)
    this.#endTurn(USED_NOTHING)
    this.#send(turn).catch(() => {})
  }

  /** Reports to the handler that the request failed. */
  #fail(error: Error): void {
    this.handler.onResponseError?.(this.#controller, error)
  }

  /** Ends the attempt, with its permit and its reservation, and stops the timer of a response that is skipped. */
  #endTurn(used?: Used): void {
    clearTimeout(this.#skipTimer)
    this.#turn?.returned(used)
  }
}

const ENDLESS = 'a refusal with a body that does not end'
const MOST_SKIPPED = 65_536
const LONGEST_SKIP_MS = 1000
