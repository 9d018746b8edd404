import { createLimiter, type Limiter, type Policy, PolicyError } from '@sluice/core'
import { nowMs, setTimer } from '@sluice/core/internal'
import { QueuedCall, type CallTerms } from './call.js'
import { CallEvents, type EventSource, type QueueEvents } from './events.js'
import { RateLimitExceededError } from './exceeded.js'
import { type KeyQueue, KeyQueues, keyQueuesOf } from './key-queue.js'
import { RetryBudget } from './retry-budget.js'
import { ACCEPTED, UNANSWERED, type Task, type Verdict } from './task.js'
import { isSearched, type WaitingSettings } from './waiting-options.js'

/** The calls of one client, `createQueue`, `limitFetch` or another: those that wait and those under way. */
export class CallQueue {
  /** Undefined until there is a listener. */
  events: CallEvents | undefined
  readonly #settings: WaitingSettings
  /** Of each limiter, in the order in which a call takes their turns. */
  readonly #stages: readonly [KeyQueues, ...KeyQueues[]]
  readonly #budget: RetryBudget | undefined
  readonly #source: EventSource
  /** The calls that wait, each with the queue of its key at the limiter whose turn it waits for. */
  readonly #waiting = new Map<QueuedCall, KeyQueue>()
  #policies: readonly Policy[] | undefined
  #ownLimiter: Limiter | undefined
  #idle: (() => void)[] = []
  #pending = 0
  #paused = false
  #closed = false
  #drains = false

  /** A queue for calls under these settings. `name` is that of a queue; clients go by the name of their limiter. */
  constructor(settings: WaitingSettings, name?: string) {
    const { adaptive, semaphore, retryBudget } = settings
    const limiters = [settings.limiter ?? adaptive ?? []].flat()
    const [limiter] = limiters
    this.#settings = settings
    // A permit is taken before the last turn, so that no call holds one while it waits for the others.
    const stages = limiters.map((each, i) => keyQueuesOf(each, limiters[i + 1] ? undefined : semaphore))
    const [first = new KeyQueues(undefined, semaphore), ...further] = stages
    this.#stages = [first, ...further]
    this.#source = { ...(name !== undefined && { queue: name }), limiter: limiter?.name }
    this.#budget = retryBudget && new RetryBudget(retryBudget)
  }

  /** Calls that wait. */
  get size(): number {
    return this.#waiting.size
  }

  /** Calls that are under way. */
  get pending(): number {
    return this.#pending
  }

  get isPaused(): boolean {
    return this.#paused
  }

  /** Listens to one type of event. Returns a function that removes the listener. */
  on<K extends keyof QueueEvents>(type: K, listener: (event: QueueEvents[K]) => void): () => void {
    this.events ??= new CallEvents(this.#source)
    return this.events.on(type, listener)
  }

  /**
   * Makes a call: waits for its turn, runs an attempt (`task.start`), judges how it ended, and begins anew if another
   * attempt is to follow. Resolves or rejects as the last attempt does, and rejects if a turn does not come in time.
   */
  async run<T>(call: QueuedCall, task: Task<T>): Promise<T> {
    let turn = this.next(call)
    for (;;) {
      await turn
      const { attempt } = call
      this.events?.started(call)
      let outcome: Outcome<T>
      try {
        outcome = { value: await task.start(call) }
      } catch (error) {
        outcome = { error }
      }
      try {
        const verdict =
          'value' in outcome
            ? ((await task.judge?.(outcome.value, attempt)) ?? ACCEPTED)
            : ((await task.judgeFailure?.(outcome.error, attempt)) ?? UNANSWERED)
        const again = this.observe(call, verdict)
        this.events?.ended(call, again, outcome)
        if (!again) {
          if ('error' in outcome) throw outcome.error
          if (task.deliver) return task.deliver(outcome.value, call)
          this.release(call)
          return outcome.value
        }
      } catch (error) {
        this.release(call)
        if ('value' in outcome) task.discard?.(outcome.value)
        throw error
      }
      // The wait begins before the permit is released; otherwise the queue would be idle for a moment.
      turn = this.next(call)
      this.release(call)
      if ('value' in outcome) task.discard?.(outcome.value)
    }
  }

  /** Makes the record of a call, before its first attempt. It waits for nothing until `run` or `next` gets it. */
  open(terms: CallTerms): QueuedCall {
    return new QueuedCall(terms, this.#settings, this.#left, this.#stages[1] && this.#movesOn)
  }

  /**
   * Waits for the turn of the call's next attempt, and before it for the delay of a retry and the pause of the key that replied.
   * Reports the wait or the refusal to listeners.
   * @throws {RateLimitExceededError} when there is no turn in time; the signal's reason when it aborts.
   */
  async next(call: QueuedCall): Promise<void> {
    const { keys, cost, priority, signal } = call.terms
    const [key] = keys
    const start = nowMs()
    try {
      signal?.throwIfAborted()
      if (call.stage > 0) call.goTo(0)
      const keyQueue = this.#stages[0].get(key)
      const attempt = ++call.attempt
      if (attempt === 1) this.#budget?.earn()
      if (this.#closed && (attempt === 1 || !this.#drains)) throw call.exceeded('closed')
      if (keyQueue.waiting >= (this.#settings.maxQueue ?? Infinity)) throw call.exceeded('queue')
      const turn = call.wait(this.#policies)
      keyQueue.waiting++
      this.#waiting.set(call, keyQueue)
      // The limiter holds only the call's own key, so the pause of another key that replied is waited for here.
      const isOwnKey = call.answeredKey === key
      const delayMs = call.delayMs + (isOwnKey ? 0 : this.#stages[0].get(call.answeredKey).pausedMs)
      if (delayMs > 0) call.delay = setTimer(() => this.#enqueue(call), delayMs)
      else this.#enqueue(call)
      this.events?.emit('queued', { key, cost, priority, attempt })
      await turn
      const waitMs = Math.round(nowMs() - start)
      if (keyQueue.pause?.takeResumption()) this.events?.emit('resumed', { key })
      if (waitMs > 0) this.events?.emit('waited', { key, cost, priority, waitMs, decision: call.decision })
    } catch (error) {
      if (error instanceof RateLimitExceededError) {
        const { reason, decision } = error
        this.events?.emit('denied', { key, cost, priority, reason, decision })
      }
      throw error
    }
  }

  /**
   * Carries out the verdict on the current attempt: adapts a searched limit, and pauses the key if the other side asked
   * for it. Returns whether another attempt is to follow, for which the verdict, the call's deadline and the budget for
   * repetitions decide. A repetition for which the other side named the time takes nothing from the budget.
   */
  observe(call: QueuedCall, verdict: Verdict): boolean {
    const { key = call.terms.keys[0], answer, pauseMs, status } = verdict
    call.answeredKey = key
    call.status = status
    call.givenUp = undefined
    const isRefusal = answer === 'limited' || answer === 'overloaded'
    call.outcome = isRefusal ? 'refused' : answer === 'served' ? 'served' : 'failed'
    call.tookMs = nowMs() - call.sentAt
    const keyQueue = this.#stages[0].get(key)
    const change = this.#settings.adaptive?.ended(key, call.outcome, call.tookMs, call.terms.cost)
    if (change) this.events?.emit('adapted', { key, ...change })
    const mayPause = keyQueue.pause !== undefined || isRefusal || pauseMs !== 0
    const aloneMs = mayPause ? this.#heed(call, verdict, keyQueue) : 0
    if (verdict.again === false || (this.#closed && !this.#drains)) return false
    const again = Math.max(verdict.again, aloneMs)
    const isLate = Math.max(again, keyQueue.pausedMs) > call.until - nowMs()
    const isPaidFor = isLate || Number(pauseMs) > 0 || (this.#budget?.spend() ?? true)
    call.givenUp = isLate ? 'maxWait' : isPaidFor ? undefined : 'budget'
    call.delayMs = again
    return call.givenUp === undefined
  }

  /**
   * Pauses the key, for all processes of the limiter, if the verdict asks for it and for no longer than `maxHold`.
   * Returns for how many milliseconds this call alone has to wait in place of that.
   */
  #heed(call: QueuedCall, verdict: Verdict, keyQueue: KeyQueue): number {
    const { maxHold } = this.#settings
    // A refusal that states no wait lowers an unknown limit, in place of pausing the key.
    const heard = isSearched(this.#settings) ? { ...verdict, pauseMs: verdict.pauseMs ?? 0 } : verdict
    const { holdMs, aloneMs } = keyQueue.heed(heard, call.sentAt)
    const ms = Math.min(holdMs, maxHold)
    const { answeredKey: key, status } = call
    if (ms > 0 && keyQueue.hold(key, ms, this.#policies)) {
      this.events?.emit('held', { key, status, holdMs: Math.ceil(ms) })
    }
    return aloneMs
  }

  /**
   * Ends the current attempt and gives its permit back, so that another call may take its place. Does nothing the second
   * time.
   */
  release(call: QueuedCall): void {
    if (!call.isUnderWay) return
    call.isUnderWay = false
    void call.permit?.release(call.outcome, call.tookMs)
    this.#pending--
    this.#checkIdle()
  }

  /** Sends no call out until `resume`. Waiting calls leave the queues of their keys; turns that were reserved are given back. */
  pause(): void {
    if (this.#paused) return
    this.#paused = true
    this.events?.emit('paused', {})
    for (const [call, keyQueue] of this.#waiting) {
      if (!call.isQueued) continue
      keyQueue.remove(call)
      call.reason = 'paused'
      call.recheck()
    }
  }

  /** Ends the pause. The calls that waited queue for their keys again, in their order. */
  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.events?.emit('continued', {})
    for (const call of this.#waiting.keys()) if (call.reason === 'paused') this.#enqueue(call)
  }

  /** Rejects each call that waits with the error that `errorOf` makes for it. Returns how many these are. */
  refuseAll(errorOf: (call: QueuedCall) => Error): number {
    const calls = [...this.#waiting.keys()]
    for (const call of calls) call.refuse(errorOf(call))
    return calls.length
  }

  /**
   * Sets other policies, also for the calls that wait.
   * @throws {PolicyError} INVALID_POLICIES.
   */
  setPolicies(policies: readonly Policy[]): void {
    if (this.#settings.adaptive) {
      throw new PolicyError('INVALID_OPTION', 'adaptive finds the rate: there are no policies to set')
    }
    const isList = Array.isArray(policies) && policies.length > 0
    if (!isList || !policies.every((policy) => policy?.windowMs > 0)) {
      const what = 'policies must be a list of policies made by gcra() and the like'
      throw new PolicyError('INVALID_POLICIES', what)
    }
    this.#policies = policies
    const [first] = this.#stages
    first.limiter ??= this.#ownLimiter = createLimiter({ policies })
    const ofFirst = [...this.#waiting].filter(([{ stage }]) => stage === 0)
    for (const [call] of ofFirst) call.policies = policies
    for (const keyQueue of new Set(ofFirst.map(([, each]) => each))) keyQueue.reserveAnew()
  }

  /** Resolves when no call waits or runs. */
  onIdle(): Promise<void> {
    if (this.#waiting.size + this.#pending === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /**
   * Refuses new calls from now on. With `drain` waiting calls still run, those of a paused queue too; without it they are
   * refused. Resolves when no call is under way and the queue's own limiter is closed.
   */
  async close(drain: boolean): Promise<void> {
    this.#closed = true
    this.#drains = drain
    if (drain) this.resume()
    else this.refuseAll((call) => call.exceeded('closed'))
    await this.onIdle()
    await this.#ownLimiter?.close()
  }

  /** Puts a call into the queue of its key; while this client is paused, notes that it waits for `resume`. */
  #enqueue(call: QueuedCall): void {
    if (this.#paused) call.reason = 'paused'
    else {
      call.reason = 'queue'
      this.#waiting.get(call)!.add(call)
    }
  }

  /**
   * Called when a call of several limiters gets a turn of one of them. It goes on to wait for that of the next limiter;
   * if its key was paused meanwhile, it gives its turns back and waits for all of them again. Returns false if it has
   * all: it can go out.
   */
  readonly #movesOn = (call: QueuedCall): boolean => {
    const isLast = call.stage === this.#stages.length - 1
    const isPaused = call.stage > 0 && this.#stages[0].get(call.terms.keys[0]).pausedMs > 0
    if (isLast && !isPaused) return false
    if (isPaused) call.giveBack()
    // In the queue of the first limiter it counts until it goes out, so that maxQueue bounds them all.
    if (call.stage > 0) this.#waiting.get(call)!.waiting--
    call.goTo(isPaused ? 0 : call.stage + 1)
    const keyQueue = this.#stages[call.stage]!.get(call.key)
    this.#waiting.set(call, keyQueue)
    call.policies = call.stage === 0 ? this.#policies : undefined
    if (call.stage > 0) keyQueue.waiting++
    this.#enqueue(call)
    return true
  }

  /** Counts out a call that no longer waits: as under way if it was granted its turn, otherwise as refused. */
  readonly #left = (call: QueuedCall, isGranted: boolean): void => {
    const keyQueue = this.#waiting.get(call)!
    keyQueue.waiting--
    if (call.stage > 0) this.#stages[0].get(call.terms.keys[0]).waiting--
    this.#waiting.delete(call)
    if (isGranted) this.#pending++
    else keyQueue.remove(call)
    if (this.#waiting.size === 0) this.events?.emit('empty', {})
    if (!isGranted) this.#checkIdle()
  }

  /** Reports that no call waits or runs, if that is so, and resolves the promises of `onIdle`. */
  #checkIdle(): void {
    if (this.#waiting.size + this.#pending > 0) return
    this.events?.emit('idle', {})
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }
}

/** How one attempt ended. */
type Outcome<T> = { readonly value: T } | { readonly error: unknown }
