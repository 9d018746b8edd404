import { createLimiter, gcra, InputError, type Limiter, type Policy, PolicyError } from '@sluice/core'
import type { Terms } from './attempt.js'
import { CallQueue } from './call-queue.js'
import type { QueueEvent } from './events.js'
import type { QueueOptions, RunContext, RunOptions } from './queue-options.js'
import { QueueTask } from './queue-task.js'
import { announce, invalid, maxWaitMsOf, waitingSettings } from './waiting-options.js'

/**
 * Calls of any function under a limit on their rate, and on how many are under way, in one process or across a fleet.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function createQueue(options: QueueOptions): Queue {
  return new Queue(options)
}

/** Made by `createQueue`. */
export class Queue {
  readonly #calls: CallQueue
  readonly #options: QueueOptions
  readonly #maxWaitMs: number
  readonly #ownLimiter: Limiter | undefined
  readonly #listeners = new Map<string, Set<(event: never) => void>>()

  constructor(options: QueueOptions) {
    const { limiter, semaphore, key = 'default', cost = 1, priority = 0 } = options
    if (limiter === undefined && semaphore === undefined)
      throw invalid('a limiter or a semaphore is required')
    if (typeof key !== 'string') throw invalid('key must be a text')
    if (typeof cost !== 'number') throw invalid('cost must be a number')
    if (typeof priority !== 'number' || Number.isNaN(priority)) throw invalid('priority must be a number')
    for (const name of ['retry', 'pauseOf', 'onEvent'] as const) {
      const value = options[name]
      if (value !== undefined && typeof value !== 'function') throw invalid(`${name} must be a function`)
    }
    this.#options = options
    this.#maxWaitMs = maxWaitMsOf(options.maxWait)
    this.#ownLimiter = limiter ? undefined : createLimiter({ policies: [gcra(UNLIMITED)] })
    const emit = (event: QueueEvent): void => this.#emit(event)
    this.#calls = new CallQueue(waitingSettings(options, limiter ?? this.#ownLimiter!, semaphore, emit))
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
   * Calls `fn` when it is its turn, and resolves or rejects as it does.
   * @throws {RateLimitExceededError} when there is no turn in time, or the queue was cleared or closed; InputError
   * INVALID_KEY, INVALID_COST, INVALID_DURATION; the signal's reason when it aborts.
   */
  run<T>(fn: (context: RunContext) => T | PromiseLike<T>, options: RunOptions = {}): Promise<T> {
    return this.#run(options, fn)
  }

  /** A function that does the same when it is its turn. `options` may depend on its arguments. */
  wrap<A extends unknown[], T>(
    fn: (...args: A) => T | PromiseLike<T>,
    options: RunOptions | ((...args: A) => RunOptions) = {},
  ): (...args: A) => Promise<T> {
    const run = (own: RunOptions, call: () => T | PromiseLike<T>): Promise<T> => this.#run(own, call)
    return function queued(this: unknown, ...args) {
      return run(typeof options === 'function' ? options(...args) : options, () => fn.apply(this, args))
    }
  }

  /** Lets no call out until `resume()`. Those that are under way go on, and `maxWait` goes on running out. */
  pause(): void {
    this.#calls.pause()
  }

  resume(): void {
    this.#calls.resume()
  }

  /** Rejects all calls that wait with `RateLimitExceededError`, reason 'cleared'. Returns how many. */
  clear(): number {
    return this.#calls.refuseAll((keyQueue) => keyQueue.exceeded('cleared'))
  }

  /** Resolves when no call waits or is under way; at once if that is so. */
  onIdle(): Promise<void> {
    return this.#calls.onIdle()
  }

  /**
   * Other policies from now on, also for the calls that wait. Lists of equal shapes (algorithms, windows, in order) go on
   * with what was consumed; another list starts anew. Each process sets its own.
   * @throws {PolicyError} INVALID_POLICIES.
   */
  setPolicies(policies: readonly Policy[]): void {
    if (
      !Array.isArray(policies) ||
      policies.length === 0 ||
      !policies.every((policy) => policy?.windowMs > 0)
    ) {
      throw new PolicyError(
        'INVALID_POLICIES',
        'policies must be a list of policies made by gcra() and the like',
      )
    }
    this.#calls.setPolicies(policies)
  }

  /** Listens to one kind of event; returns what ends it. */
  on<K extends QueueEvent['type']>(
    type: K,
    listener: (event: Extract<QueueEvent, { readonly type: K }>) => void,
  ): () => void {
    const listeners = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, listeners)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  /**
   * Refuses new calls. Those that wait are rejected, reason 'closed', or with `drain` made first. Resolves when none is
   * under way. The limiter and the semaphore are closed by their makers.
   */
  async close({ drain = false }: { readonly drain?: boolean } = {}): Promise<void> {
    await this.#calls.close(drain)
    await this.#ownLimiter?.close()
  }

  #run<T>(options: RunOptions, fn: (context: RunContext) => T | PromiseLike<T>): Promise<T> {
    try {
      return this.#calls.run(this.#termsOf(options), new QueueTask(fn, options.signal, this.#options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #termsOf({ key, cost, priority, signal, maxWait }: RunOptions): Terms {
    const own = this.#options
    return {
      key: key ?? own.key ?? 'default',
      cost: cost ?? own.cost ?? 1,
      priority: checkPriority(priority ?? own.priority ?? 0),
      maxWaitMs: maxWait === undefined ? this.#maxWaitMs : maxWaitMsOf(maxWait, InputError),
      signal,
    }
  }

  #emit(event: QueueEvent): void {
    const { onEvent } = this.#options
    if (onEvent) announce(onEvent, event)
    for (const listener of this.#listeners.get(event.type) ?? []) announce(listener, event as never)
  }
}

/** No call ever waits for it, but it can be held. */
const UNLIMITED = { limit: 1_000_000_000, window: '1s' } as const

function checkPriority(priority: number): number {
  if (typeof priority === 'number' && !Number.isNaN(priority)) return priority
  throw new InputError('INVALID_PRIORITY', `priority must be a number, got ${String(priority)}`)
}
