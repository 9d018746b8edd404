import { type Decision, InputError, type Policy } from '@sluice/core'
import { clearTimer, onAbort, readOptions, setTimer, type Settings } from '@sluice/core/internal'
import type { AdaptiveRateOptions } from './adaptive/options.js'
import { CallQueue } from './call-queue.js'
import { QUEUE_EVENTS, type QueueEvents } from './events.js'
import { RateLimitExceededError } from './exceeded.js'
import { QUEUE, type QueueOptions, RUN, type RunContext, type RunOptions } from './queue-options.js'
import type { CallTerms, Turn } from './turn.js'
import { FINAL, UNANSWERED, type Verdict } from './verdict.js'
import { checkSources, keysFor, type LimiterOption, sourcesOf } from './waiting-options.js'

/**
 * Makes a queue that calls any function under a limit on the rate, on concurrency, or both, in one process or across a fleet.
 * @example
 * const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
 * const queue = createQueue({ limiter, semaphore: createSemaphore({ limit: 5 }) })
 * const rows = await queue.run(() => query('a'), { priority: 1, maxWait: '1m' })
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function createQueue(
  options: QueueOptions & ({ readonly limiter: LimiterOption } | { readonly adaptive: AdaptiveRateOptions }),
): Queue
export function createQueue(options: QueueOptions): Queue<Decision | undefined>
export function createQueue(options: QueueOptions): Queue<Decision | undefined> {
  return new Queue(options)
}

/** Made by `createQueue`. `D` is the decision that its functions get. */
export class Queue<D extends Decision | undefined = Decision> {
  /** Its name in events. */
  readonly name: string
  readonly #calls: CallQueue
  readonly #settings: Settings<typeof QUEUE>

  /**
   * Checks the options. Without a name the queue goes by that of its first limiter, or of the semaphore. `onEvent` listens to all
   * types of events.
   */
  constructor(options: QueueOptions) {
    const settings = readOptions(QUEUE, options, { what: 'createQueue' })
    const { adaptive, semaphore, onEvent } = settings
    checkSources(settings)
    this.name = settings.name ?? (adaptive ?? sourcesOf(settings).limiters[0] ?? semaphore!).name
    this.#settings = settings
    this.#calls = new CallQueue(settings, this.name)
    if (onEvent) for (const type of QUEUE_EVENTS) this.#calls.on(type, onEvent)
  }

  /** Calls that wait. */
  get size(): number {
    return this.#calls.size
  }

  /** Calls that are under way. */
  get pending(): number {
    return this.#calls.pending
  }

  get isPaused(): boolean {
    return this.#calls.isPaused
  }

  /**
   * Calls `fn` when it is its turn, and resolves or rejects as `fn` does.
   * @throws {RateLimitExceededError} when there is no turn in time, or the queue was cleared or closed; InputError
   * INVALID_KEY, INVALID_COST, INVALID_DURATION, INVALID_PRIORITY, INVALID_OPTION; the signal's reason when it aborts.
   */
  run<T>(fn: (context: RunContext<D>) => T | PromiseLike<T>, options?: RunOptions): Promise<T> {
    let terms: CallTerms
    let timeoutMs: number | undefined
    try {
      const defaults = this.#settings
      const {
        key = defaults.key,
        cost = defaults.cost,
        priority = defaults.priority,
        signal,
        maxWait: maxWaitMs = defaults.maxWait ?? Infinity,
        timeout,
      } = options === undefined ? NONE : readOptions(RUN, options, ABOUT_RUN)
      timeoutMs = timeout
      const keys = typeof key === 'string' ? ([key] as const) : keysFor(defaults.limiter, key)
      const tenant = defaults.fair?.(fn, options ?? {})
      const weight = tenant === undefined ? 1 : (defaults.weight?.(tenant) ?? 1)
      const silence = (): void => ignoreRejection(() => result)
      terms = { keys, cost, priority, tenant, weight, maxWaitMs, signal, silence }
    } catch (error) {
      return Promise.reject(error)
    }
    // `silence` needs the very promise that the caller gets: a rejection is handled for each promise by itself.
    const result =
      timeoutMs === undefined ? this.#makeCall(terms, fn) : this.#makeCallInTime(terms, fn, timeoutMs)
    return result
  }

  /**
   * Returns a function that takes the arguments of `fn` and calls it with them when it is the call's turn. `options` are those of
   * `run`, or a function that makes them of the arguments. Where that throws, the call rejects.
   */
  wrap<A extends unknown[], T>(
    fn: (...args: A) => T | PromiseLike<T>,
    options: RunOptions | ((...args: A) => RunOptions) = {},
  ): (...args: A) => Promise<T> {
    const run = this.run.bind(this)
    return function queued(this: unknown, ...args) {
      try {
        return run(() => fn.apply(this, args), typeof options === 'function' ? options(...args) : options)
      } catch (error) {
        return Promise.reject(error)
      }
    }
  }

  /** Starts no call until `resume()`. Calls under way go on, and so does `maxWait` of waiting ones. */
  pause(): void {
    this.#calls.pause()
  }

  /** Ends the pause. The calls that wait keep their order. */
  resume(): void {
    this.#calls.resume()
  }

  /**
   * Rejects all calls that wait with `RateLimitExceededError`, reason 'cleared', and returns how many. A rejection that the
   * caller does not handle does not count as an unhandled rejection.
   */
  clear(): number {
    return this.#calls.refuseAll(({ key, terms }) => {
      terms.silence?.()
      return new RateLimitExceededError(key, 'cleared')
    })
  }

  /** Resolves as soon as no call waits or is under way. */
  onIdle(): Promise<void> {
    return this.#calls.onIdle()
  }

  /**
   * Sets other policies, also for the calls that wait. Consumed units still count if the new list has the same shapes
   * (algorithms and windows, in order); a list of other shapes starts with a full allowance. Each process sets its own.
   * @throws {PolicyError} INVALID_POLICIES, DUPLICATE_NAME.
   */
  setPolicies(policies: readonly Policy[]): void {
    this.#calls.setPolicies(policies)
  }

  /** Listens to one type of event. Returns a function that removes the listener. */
  on<K extends keyof QueueEvents>(type: K, listener: (event: QueueEvents[K]) => void): () => void {
    return this.#calls.on(type, listener)
  }

  /**
   * Refuses new calls. Waiting calls are rejected, reason 'closed'; with `drain` they are made first. Resolves when no call
   * is under way. The limiter and the semaphore stay open.
   */
  close({ drain = false }: { readonly drain?: boolean } = {}): Promise<void> {
    return this.#calls.close(drain)
  }

  /** Calls `fn` at the call's turn, and again if the option `retry` asks for it. Settles as the last attempt does. */
  #makeCall<T>(terms: CallTerms, fn: (context: RunContext<D>) => T | PromiseLike<T>): Promise<T> {
    const { signal } = terms
    return this.#calls.run(terms, {
      start: ({ decisions, attempt }) => fn({ signal, decision: decisions.at(-1) as D, attempt }),
      judgeFailure: (error, attempt) => this.#judge(error, attempt),
    })
  }

  /**
   * Makes a call as `#makeCall` does, but with a time limit for each attempt. If an attempt takes longer, the promise rejects at once
   * with a TimeoutError, the signal that `fn` got aborts, and no attempt follows. The call keeps its permit until `fn` has settled.
   */
  #makeCallInTime<T>(
    terms: CallTerms,
    fn: (context: RunContext<D>) => T | PromiseLike<T>,
    timeoutMs: number,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let hasTimedOut = false
      // Makes one attempt. The signal for `fn` aborts with the caller's signal, or when the time is over.
      const start = async ({ decisions, attempt }: Turn): Promise<T> => {
        const controller = new AbortController()
        const { signal: callerSignal } = terms
        const abort = (): void => controller.abort(callerSignal!.reason)
        const stopListening = callerSignal && onAbort(callerSignal, abort)
        if (callerSignal?.aborted) abort() // by a listener of `started`
        const timer = setTimer(() => {
          hasTimedOut = true
          const error = new DOMException(`the call took longer than ${timeoutMs} ms`, 'TimeoutError')
          controller.abort(error)
          reject(error)
        }, timeoutMs)
        try {
          return await fn({ signal: controller.signal, decision: decisions.at(-1) as D, attempt })
        } finally {
          clearTimer(timer)
          stopListening?.()
        }
      }
      const judgeFailure = (error: unknown, attempt: number) =>
        hasTimedOut ? UNANSWERED : this.#judge(error, attempt)
      this.#calls.run(terms, { start, judgeFailure }).then(resolve, reject)
    })
  }

  /**
   * Judges a failed attempt by the options. The failure is a refusal by the other side if `isRefusal` says so or `pauseOf` returns
   * a pause; of a refusal without a pause, the queue of the key decides how long the key pauses. Any other failure says nothing
   * about limits. `retry` decides whether another attempt follows, and after how many milliseconds.
   */
  async #judge(error: unknown, attempt: number): Promise<Verdict> {
    const { pauseOf, isRefusal, retry } = this.#settings
    const pauseMs = pauseOf?.({ error }) ?? 0
    const refusal = isRefusal?.({ error })
    if (refusal === 'final') return FINAL
    const isRefused = refusal !== 'none' && (refusal === true || pauseMs > 0)
    const retryMs = (await retry?.(error, attempt)) ?? false
    const isDelay = typeof retryMs === 'number' && retryMs >= 0 && retryMs < Infinity
    return {
      answer: isRefused ? 'overloaded' : 'other',
      pauseMs: pauseMs > 0 ? pauseMs : isRefused ? undefined : 0,
      again: isDelay && Math.min(retryMs, LONGEST_TIMER_MS),
    }
  }
}

/** A timer of a longer time fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
/** Handles the rejection of a promise that exists only after this step: a listener of 'queued' may clear a call before it has one. */
function ignoreRejection(later: () => Promise<unknown>): void {
  Promise.resolve()
    .then(later)
    .catch(() => {})
}

const ABOUT_RUN = { what: 'run', error: InputError }
const NONE = readOptions(RUN, {}, ABOUT_RUN)
