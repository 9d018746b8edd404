import type { CallOptions, Decision, Duration, Limiter } from '@sluice/core'
import {
  type DeclarationOf,
  duration,
  readOptions,
  readOption,
  unchecked,
  whole,
} from '@sluice/core/internal'

/** How requests over the limit wait for their turn, in place of a 429. */
export interface RequestWaitOptions {
  /**
   * The longest that a request over the limit waits for its turn, up to 1 day; a number is in milliseconds. A request whose turn
   * is later is answered 429 at once. A caller who hangs up gives the turn back.
   * @default 0
   */
  readonly maxWait?: Duration
  /**
   * Most requests that wait at once, in this process and for one key; further ones are answered 429 at once. Requests that the
   * store has not answered yet count too.
   * @default { process: 1000, key: 16 }
   */
  readonly maxWaiting?: { readonly process?: number; readonly key?: number }
}

const MOST = { process: whole(1, 1_000_000, 1000), key: whole(1, 1_000_000, 16) }

export const WAITING = {
  maxWait: duration(0, '1d', 0),
  maxWaiting: unchecked(),
} satisfies DeclarationOf<RequestWaitOptions>

/**
 * The counter of waiting requests of one guard, from its options `maxWait` and `maxWaiting`; undefined if no request may
 * wait, as `maxWait` is 0.
 */
export function waitingRequests(options: RequestWaitOptions): WaitingRequests | undefined {
  const maxWaitMs = readOption(WAITING.maxWait, options.maxWait, 'maxWait', { what: 'rateLimit' })
  const most = readOptions(MOST, options.maxWaiting ?? {}, { what: 'maxWaiting', prefix: 'maxWaiting.' })
  return maxWaitMs > 0 ? new WaitingRequests(maxWaitMs, most.process, most.key) : undefined
}

export class WaitingRequests {
  #all = 0
  readonly #byKey = new Map<string, number>()

  /**
   * Counts the requests of a guard that wait for their turn: at most `most` at once, `mostOfKey` of them on one key, each for
   * at most `maxWaitMs`.
   */
  constructor(
    readonly maxWaitMs: number,
    readonly most: number,
    readonly mostOfKey: number,
  ) {}

  /** Whether one more request may wait, in the process and on this key. */
  hasRoom(key: string): boolean {
    return this.#all < this.most && (this.#byKey.get(key) ?? 0) < this.mostOfKey
  }

  /**
   * Waits for the turn of a request, the instant at which its cost fits, and returns the decision. A turn later than
   * `maxWaitMs` is a denial, which comes at once. `onHungUp` adds a listener for the caller's hang-up, which it calls at once
   * if he has hung up already: the turn is then given back, or not asked for, and the result is undefined.
   */
  async decide(
    limiter: Limiter,
    key: string,
    options: CallOptions | undefined,
    onHungUp: (listener: () => void) => (() => void) | undefined,
  ): Promise<Decision | undefined> {
    const controller = new AbortController()
    const { signal } = controller
    const stopListening = onHungUp(() => controller.abort())
    if (signal.aborted) return undefined
    this.#count(key, 1)
    try {
      return await limiter.acquire(key, { ...options, maxWait: this.maxWaitMs, signal })
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    } finally {
      this.#count(key, -1)
      stopListening?.()
    }
  }

  /**
   * Adds `by`, 1 or -1, to the number of requests that wait, in the process and on this key. A key without waiting
   * requests is removed from the map.
   */
  #count(key: string, by: number): void {
    this.#all += by
    const ofKey = (this.#byKey.get(key) ?? 0) + by
    if (ofKey > 0) this.#byKey.set(key, ofKey)
    else this.#byKey.delete(key)
  }
}
