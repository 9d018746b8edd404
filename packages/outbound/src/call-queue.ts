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

  /**
   * Makes the queue for calls under these settings. `name` is that of a queue made by `createQueue`; clients such as `limitFetch`
   * have none and go by the name of their limiter. Each limiter becomes a stage (`KeyQueues`, one queue for each key), and a call
   * takes a turn at every stage, in their order. Without a limiter there is one stage, for the semaphore alone.
   */
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

  /** Listens to one type of event; without a listener, calls report nothing. Returns a function that removes the listener. */
  on<K extends keyof QueueEvents>(type: K, listener: (event: QueueEvents[K]) => void): () => void {
    this.events ??= new CallEvents(this.#source)
    return this.events.on(type, listener)
  }

  /**
   * Makes a call: waits for its turn, runs an attempt (`task.start`), has the task judge how it ended, and begins anew if another
   * attempt is to follow. Resolves or rejects as the last attempt does, and rejects if a turn does not come in time. A task with
   * `deliver` ends the call (`release`) by itself, for example when the response has been read; any other call ends here.
   * `task.discard` drops a result that no caller gets.
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

  /**
   * Makes the record of a call from its terms: keys, cost, priority, longest wait and signal. It waits for nothing until it is
   * passed to `run` or `next`. It calls `#left` after each wait, and `#movesOn` with each turn if there are several limiters.
   */
  open(terms: CallTerms): QueuedCall {
    return new QueuedCall(terms, this.#settings, this.#left, this.#stages[1] && this.#movesOn)
  }

  /**
   * Waits for the turn of the call's next attempt. First it waits for the delay of a retry (`delayMs`) and for the pause of the
   * key that the last reply was about, which after a redirect may be another key than the call's own. A call is refused at once
   * if `maxQueue` calls wait for its key already, or if the queue is closed, except for retries while it drains. Reports the wait
   * or the refusal to listeners.
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
   * Carries out the verdict on the current attempt: reports its outcome to the search for an unknown rate (`adaptive`), pauses
   * the key if the other side asked for a pause, and returns whether another attempt is to follow. None follows if the verdict
   * rules it out (`again` is false), if it would begin after the call's deadline, or if the budget for retries is used up;
   * `givenUp` names which of the last two. A retry for which the other side named the time takes nothing from the budget.
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
   * Pauses the key, for all processes of the limiter, for as long as the verdict asks, but for `maxHold` milliseconds at most.
   * Returns for how many milliseconds this call alone has to wait before a retry: more than 0 only after a single refusal, for
   * which the key is not paused.
   */
  #heed(call: QueuedCall, verdict: Verdict, keyQueue: KeyQueue): number {
    const { maxHold } = this.#settings
    // While a limit is searched for, a refusal that states no wait lowers the limit in place of pausing the key.
    const heard = isSearched(this.#settings) ? { ...verdict, pauseMs: verdict.pauseMs ?? 0 } : verdict
    const { holdMs, aloneMs } = keyQueue.heed(heard, call.sentAt)
    const ms = Math.min(holdMs, maxHold)
    const { answeredKey: key, status } = call
    if (ms > 0 && keyQueue.hold(key, ms, call.sentAt, this.#policies)) {
      this.events?.emit('held', { key, status, holdMs: Math.ceil(ms) })
    }
    return aloneMs
  }

  /**
   * Ends the current attempt: the call no longer counts as under way, and its permit goes back to the semaphore, with the outcome
   * and the time that the attempt took, by which an adaptive limit is found. Does nothing the second time.
   */
  release(call: QueuedCall): void {
    if (!call.isUnderWay) return
    call.isUnderWay = false
    call.permit?.release(call.outcome, call.tookMs).catch(() => {})
    this.#pending--
    this.#checkIdle()
  }

  /**
   * Sends no call out until `resume`. Queued calls leave the queues of their keys and lose their reserved turns. A call past its
   * deadline was kept only because its reserved turn might still come in time: without that turn, `recheck` refuses it.
   */
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

  /** Ends the pause. The calls that waited for its end enter the queues of their keys again, in the order in which they came. */
  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.events?.emit('continued', {})
    for (const call of this.#waiting.keys()) if (call.reason === 'paused') this.#enqueue(call)
  }

  /** Rejects each call that waits with the error that `errorOf` makes for it. Returns how many calls were rejected. */
  refuseAll(errorOf: (call: QueuedCall) => Error): number {
    const calls = [...this.#waiting.keys()]
    for (const call of calls) call.refuse(errorOf(call))
    return calls.length
  }

  /**
   * Sets other policies of the first limiter, also for the calls that wait for its turn: their turns are reserved anew. In a
   * queue without a limiter it makes one, which is closed with the queue.
   * @throws {PolicyError} INVALID_POLICIES; INVALID_OPTION with `adaptive`, which has no policies.
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
   * Refuses new calls from now on. With `drain` waiting calls still run, also in a paused queue; without `drain` they are refused
   * with the reason 'closed'. Resolves when no call is under way and the limiter that `setPolicies` made, if any, is closed.
   */
  async close(drain: boolean): Promise<void> {
    this.#closed = true
    this.#drains = drain
    if (drain) this.resume()
    else this.refuseAll((call) => call.exceeded('closed'))
    await this.onIdle()
    await this.#ownLimiter?.close()
  }

  /**
   * Puts a call into the queue of the key that it waits for; while this client is paused, only notes that it waits for `resume`.
   * `reason` is that of the refusal if the call's deadline passes first.
   */
  #enqueue(call: QueuedCall): void {
    if (this.#paused) call.reason = 'paused'
    else {
      call.reason = 'queue'
      this.#waiting.get(call)!.add(call)
    }
  }

  /**
   * Called when a call gets a turn at one of several limiters. Returns false if that was the last one: the call can go out.
   * Otherwise it puts the call into the queue of the next limiter and returns true. If the call's key was paused meanwhile, the
   * turns it has would come too early: it gives them back and begins with the first limiter again.
   */
  readonly #movesOn = (call: QueuedCall): boolean => {
    const isLast = call.stage === this.#stages.length - 1
    const isPaused = call.stage > 0 && this.#stages[0].get(call.terms.keys[0]).pausedMs > 0
    if (isLast && !isPaused) return false
    if (isPaused) call.giveBack()
    // A call stays counted at the first limiter until it goes out, so that maxQueue bounds the calls at all limiters.
    if (call.stage > 0) this.#waiting.get(call)!.waiting--
    call.goTo(isPaused ? 0 : call.stage + 1)
    const keyQueue = this.#stages[call.stage]!.get(call.key)
    this.#waiting.set(call, keyQueue)
    call.policies = call.stage === 0 ? this.#policies : undefined
    if (call.stage > 0) keyQueue.waiting++
    this.#enqueue(call)
    return true
  }

  /**
   * Called at the end of a call's wait, which counts as waiting no longer: if it was granted its turn, it is under way, otherwise
   * it leaves the queue of its key. At a later limiter (`stage` above 0) it was counted there and at the first one too.
   */
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
