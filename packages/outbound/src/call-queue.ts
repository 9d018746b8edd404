import { InputError, type Limiter, type Policy, PolicyError } from '@sluice/core'
import { checkCost, expectedButGot, nowMs, OPEN_PART, storedKey } from '@sluice/core/internal'
import { CallEvents, type EventSource, type QueueEvents } from './events.js'
import { RateLimitExceededError } from './exceeded.js'
import { NO_WAIT, type Wait } from './key-pause.js'
import { type KeyQueue, KeyQueues, sharedKeyQueues, type TurnSource } from './key-queue.js'
import { RetryBudget } from './retry-budget.js'
import { type CallTerms, type Client, Turn } from './turn.js'
import { USED_COST, USED_NOTHING } from './settle.js'
import { ACCEPTED, UNANSWERED, UNJUDGED, type Verdict } from './verdict.js'
import { isSearched, sourcesOf, type WaitingSettings } from './waiting-options.js'

/** The steps of a call once it is its turn, as its client describes them. */
export interface Task<T> {
  /** Makes one attempt. */
  start(turn: Turn): T | PromiseLike<T>
  /** Decides what follows a result; without it, the other side has accepted the call. `attempt` counts from 1. */
  judge?(value: T, attempt: number): Verdict | Promise<Verdict>
  /** Decides what follows a failure; without it, failures have nothing to do with limits. */
  judgeFailure?(error: unknown, attempt: number): Verdict | Promise<Verdict>
  /** Hands the result to the caller, and returns the turn when the call is no longer under way; without it, it is returned at once. */
  deliver?(value: T, turn: Turn): T
  /** Drops a result that no caller gets: another attempt follows, or `judge` or `deliver` threw. */
  discard?(value: T): void
}

/** The calls of one client, `createQueue`, `limitFetch` or another: those that wait and those under way. */
export class CallQueue implements Client {
  /** Undefined until there is a listener. */
  events: CallEvents | undefined
  policies: readonly Policy[] | undefined
  /** Of each limiter, in the order in which a call takes their turns. */
  readonly #stages: readonly [KeyQueues, ...KeyQueues[]]
  readonly #budget: RetryBudget | undefined
  readonly #limiters: readonly Limiter[]
  readonly #source: EventSource
  /** The calls that wait, each with the queue of its key at the limiter whose turn it waits for. */
  readonly #waiting = new Map<Turn, KeyQueue>()
  #ownLimiter: Limiter | undefined
  #idle: (() => void)[] = []
  #pending = 0
  #paused = false
  #closed = false
  #drains = false

  /**
   * Makes a queue of calls under these settings; `name` is that of `createQueue`. Each limiter is a stage: a call takes a turn at
   * every one, in their order. Without a limiter there is one stage, for the semaphore alone; `adaptive`, a rate that is searched
   * for, stands in place of limiters. The queues of keys of a stage are shared by all clients with its limiter and semaphores.
   * `#source` is what events name, and `#budget` bounds retries.
   */
  constructor(
    readonly settings: WaitingSettings,
    name?: string,
  ) {
    const { adaptive, retryBudget } = settings
    const { limiters, permits } = sourcesOf(settings)
    this.#limiters = limiters
    const turnSources: readonly (TurnSource & { readonly name?: string })[] = adaptive ? [adaptive] : limiters
    // Permits are taken before the last turn, so that no call holds one while it waits for the others.
    const last = turnSources.length - 1
    const stages = turnSources.map((turnSource, i) => sharedKeyQueues(turnSource, i === last ? permits : []))
    const [first = new KeyQueues(undefined, permits), ...further] = stages
    this.#stages = [first, ...further]
    this.#source = { ...(name !== undefined && { queue: name }), limiter: turnSources[0]?.name }
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

  /**
   * Listens to one type of event; without a listener, calls report nothing. The event `nearing` is one of the limiters, handed
   * on as long as it has a listener here. Returns a function that removes the listener.
   */
  on<K extends keyof QueueEvents>(type: K, listener: (event: QueueEvents[K]) => void): () => void {
    const events = (this.events ??= new CallEvents(this.#source))
    const remove = events.on(type, listener)
    if (type !== 'nearing') return remove
    const removals = this.#limiters.map((limiter) => limiter.on('nearing', events.nearing))
    return () => {
      remove()
      if (!events.hears('nearing')) for (const removeFromLimiter of removals) removeFromLimiter()
    }
  }

  /**
   * Makes a call: waits for its turn, runs an attempt, has the task judge the outcome, and begins anew if another attempt is to
   * follow. Resolves or rejects as the last attempt does. A task with `deliver` returns the last turn itself.
   */
  async run<T>(terms: CallTerms, task: Task<T>): Promise<T> {
    let turn = await this.next(terms)
    for (;;) {
      const { attempt } = turn
      this.events?.started(turn)
      let outcome: Outcome<T>
      try {
        outcome = { value: await task.start(turn) }
      } catch (error) {
        outcome = { error }
      }
      try {
        const verdict =
          'value' in outcome
            ? ((await task.judge?.(outcome.value, attempt)) ?? ACCEPTED)
            : ((await task.judgeFailure?.(outcome.error, attempt)) ?? UNANSWERED)
        const again = this.carryOutVerdict(turn, verdict)
        this.events?.ended(turn, again, outcome)
        if (!again) {
          if ('error' in outcome) throw outcome.error
          if (task.deliver) return task.deliver(outcome.value, turn)
          turn.returned()
          return outcome.value
        }
      } catch (error) {
        const hasHookThrown = turn.ending === UNJUDGED
        if (hasHookThrown) this.events?.ended(turn, false, { error })
        turn.returned('value' in outcome ? USED_COST : undefined)
        if ('value' in outcome) task.discard?.(outcome.value)
        throw error
      }
      // The wait begins before the permit is returned; otherwise the queue would be idle for a moment.
      const next = this.next(terms, turn)
      turn.returned('value' in outcome ? USED_NOTHING : undefined)
      if ('value' in outcome) task.discard?.(outcome.value)
      turn = await next
    }
  }

  /**
   * Waits for the turn of a call's attempt, and resolves with the turn. `last` is the turn of the attempt before, if this is a
   * retry. The call is refused at once if `maxQueue` calls wait for its key already, or if the queue is closed; while the queue
   * drains, retries still wait.
   * @throws {RateLimitExceededError} when there is no turn in time; InputError; the signal's reason when it aborts.
   */
  async next(terms: CallTerms, last?: Turn): Promise<Turn> {
    const { keys, cost, priority, signal } = terms
    const [key] = keys
    try {
      if (!last) checkTerms(terms)
      signal?.throwIfAborted()
      const stored = last?.stored ?? storedKey(key)
      const keyQueue = this.#stages[0].get(stored)
      if (!last) this.#budget?.earn()
      const isAwaitedRetry = last !== undefined && this.#drains
      if (this.#closed && !isAwaitedRetry) throw new RateLimitExceededError(key, 'closed')
      const isFull = keyQueue.turns.size >= (this.settings.maxQueue ?? Infinity)
      if (isFull) throw new RateLimitExceededError(key, 'queue')
      const turn = new Turn(this, terms, stored, last)
      keyQueue.turns.add(turn)
      this.#waiting.set(turn, keyQueue)
      const delayMs = last ? this.#delayAfter(last) : 0
      if (delayMs > 0) turn.delay(delayMs, () => this.#enqueue(turn))
      else this.#enqueue(turn)
      this.events?.emit('queued', { key, cost, priority, attempt: turn.attempt })
      try {
        await turn.comes
      } finally {
        turn.reports?.forEach((report) => report())
      }
      if (signal?.aborted) turn.refused(signal.reason) // by one of the listeners
      signal?.throwIfAborted()
      const waitMs = Math.round(turn.sentAt - turn.begunAt)
      if (keyQueue.pause?.takeResumption()) this.events?.emit('resumed', { key })
      if (waitMs > 0)
        this.events?.emit('waited', { key, cost, priority, waitMs, decision: turn.decisions.at(-1) })
      return turn
    } catch (error) {
      if (error instanceof RateLimitExceededError) {
        const { reason, decision } = error
        this.events?.emit('denied', { key, cost, priority, reason, decision })
      }
      throw error
    }
  }

  /**
   * Carries out the verdict on an attempt: pauses the key if the other side asked for that, and returns whether another attempt
   * follows. None does if the queue is closed, if the attempt would begin after the call's deadline (`until`), or if the budget for
   * retries is used up. A retry for which the other side stated the time takes nothing from the budget.
   */
  carryOutVerdict(turn: Turn, verdict: Verdict): boolean {
    const { terms, sentAt, until } = turn
    const { key = terms.keys[0], answer, pauseMs } = verdict
    const isRefusal = answer === 'limited' || answer === 'overloaded'
    const outcome = isRefusal ? 'refused' : answer === 'served' ? 'served' : 'failed'
    const now = nowMs()
    const tookMs = now - sentAt
    turn.judged({ verdict, outcome, tookMs, delayMs: 0, givenUp: verdict.givenUp })
    const keyQueue = this.#stages[0].get(key === terms.keys[0] ? turn.stored : storedKey(key))
    const change = this.settings.adaptive?.ended(key, outcome, tookMs, terms.cost)
    if (change) this.events?.emit('adapted', { key, ...change })
    const mayPause = keyQueue.pause !== undefined || isRefusal || pauseMs !== 0
    const pauseWait = mayPause ? this.#pauseKey(key, verdict, sentAt, keyQueue) : NO_WAIT
    const isRetryRefused = this.#closed && !this.#drains
    if (verdict.again === false || isRetryRefused) return false
    const delayMs = Math.max(verdict.again, pauseWait.aloneMs)
    const wouldBeTooLate = Math.max(delayMs, keyQueue.pausedMs) > until - now
    const mayRetry = (): boolean => pauseWait.isStated || (this.#budget?.spend() ?? true)
    const givenUp = wouldBeTooLate ? 'maxWait' : mayRetry() ? undefined : 'budget'
    turn.judged({ verdict, outcome, tookMs, delayMs, givenUp })
    return givenUp === undefined
  }

  /**
   * Pauses a key, for all processes of the limiter and for `maxHold` at most, if the verdict on an attempt asks for that. The
   * attempt went out at `sentAt`. Returns who has to wait, and for how long.
   */
  #pauseKey(key: string, verdict: Verdict, sentAt: number, keyQueue: KeyQueue): Wait {
    const wait = keyQueue.countAnswer(verdict, sentAt, isSearched(this.settings))
    const holdMs = Math.min(wait.keyMs, this.settings.maxHold)
    if (holdMs > 0 && keyQueue.hold(key, holdMs, sentAt, this.policies)) {
      this.events?.emit('held', { key, status: verdict.status, holdMs: Math.ceil(holdMs) })
    }
    return wait
  }

  /**
   * Sends no call out until `resume`. Calls that wait leave the queues of their keys (`line` is a call's place there), and give up the
   * turns that were booked for them.
   */
  pause(): void {
    if (this.#paused) return
    this.#paused = true
    this.events?.emit('paused', {})
    for (const [turn, keyQueue] of this.#waiting) {
      if (!turn.line) continue
      keyQueue.remove(turn)
      turn.pause()
    }
  }

  /** Ends the pause. The calls that waited for its end enter the queues of their keys again, in the order in which they came. */
  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.events?.emit('continued', {})
    for (const turn of this.#waiting.keys()) if (turn.isPaused) this.#enqueue(turn)
  }

  /** Rejects each call that waits with the error that `errorOf` makes for it. Returns how many calls were rejected. */
  refuseAll(errorOf: (turn: Turn) => Error): number {
    const turns = [...this.#waiting.keys()]
    for (const turn of turns) turn.refused(errorOf(turn))
    return turns.length
  }

  /**
   * Sets other policies of the first limiter, also for the calls that wait for its turn: their turns are booked anew. In a
   * queue without a limiter it makes one, which is closed with the queue.
   * @throws {PolicyError} INVALID_POLICIES, DUPLICATE_NAME; INVALID_OPTION with `adaptive`, which has no policies; {StoreError} CLOSED
   * where the limiter is closed.
   */
  setPolicies(policies: readonly Policy[]): void {
    if (this.settings.adaptive) {
      throw new PolicyError('INVALID_OPTION', 'adaptive finds the rate: there are no policies to set')
    }
    const limiter = this.#limiters[0] ?? this.#ownLimiter
    if (limiter) tryPolicies(limiter, policies)
    else this.#ownLimiter = this.#stages[0].limitBy(policies)
    this.policies = policies
    const atFirst = [...this.#waiting].filter(([turn]) => turn.stage === 0)
    for (const [turn] of atFirst) turn.goTo(0)
    for (const keyQueue of new Set(atFirst.map(([, keyQueue]) => keyQueue))) keyQueue.bookAnew()
  }

  /** Resolves when no call waits or is under way. */
  onIdle(): Promise<void> {
    if (this.#waiting.size + this.#pending === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /**
   * Refuses new calls. Refuses the calls that wait too, or with `drain` makes them first, also in a paused queue. Resolves when no
   * call is under way, and the limiter that `setPolicies` made, if any, is closed.
   */
  async close(drain: boolean): Promise<void> {
    this.#closed = true
    this.#drains = drain
    if (drain) this.resume()
    else this.refuseAll(({ key }) => new RateLimitExceededError(key, 'closed'))
    await this.onIdle()
    await this.#ownLimiter?.close()
  }

  /**
   * Has a call that got the turn of a limiter wait for the next limiter. Returns false, and does nothing, if that limiter is the
   * last. If the call's key was paused meanwhile, the turns that it has come too early: it gives them back and begins with the
   * first limiter again.
   */
  enterNext(turn: Turn): boolean {
    const isLast = turn.stage === this.#stages.length - 1
    const isPaused = turn.stage > 0 && this.#stages[0].get(turn.stored).pausedMs > 0
    if (isLast && !isPaused) return false
    // A call stays counted at the first limiter until it goes out, so that maxQueue bounds the calls at all limiters.
    if (turn.stage > 0) this.#waiting.get(turn)!.turns.delete(turn)
    turn.goTo(isPaused ? 0 : turn.stage + 1)
    const keyQueue = this.#stages[turn.stage]!.get(storedKey(turn.key))
    keyQueue.turns.add(turn)
    this.#waiting.set(turn, keyQueue)
    this.#enqueue(turn)
    return true
  }

  /**
   * Called at the end of a call's wait for its turn, which was granted or refused, and at the end of the attempt, when the turn
   * is returned. Moves the call from those that wait to those under way, or out of both.
   */
  ended(turn: Turn, end: 'granted' | 'refused' | 'returned'): void {
    if (end === 'returned') this.#pending--
    else {
      const keyQueue = this.#waiting.get(turn)!
      this.#waiting.delete(turn)
      keyQueue.turns.delete(turn)
      // At a later limiter a turn is counted there and at the first one too.
      if (turn.stage > 0) this.#stages[0].get(turn.stored).turns.delete(turn)
      if (end === 'granted') this.#pending++
      else keyQueue.remove(turn)
      if (this.#waiting.size === 0) this.events?.emit('empty', {})
    }
    if (end !== 'granted' && this.#waiting.size + this.#pending === 0) this.#reportIdle()
  }

  /** Puts a call into the queue of the key that it waits for; while this client is paused, it waits for `resume`. */
  #enqueue(turn: Turn): void {
    if (this.#paused) turn.pause()
    else this.#waiting.get(turn)!.add(turn)
  }

  /**
   * Milliseconds to wait after the attempt `last` before the call enters a queue again: the delay of the retry and, if the reply
   * was about another key than the call's own, the pause of that key. The queue of the own key waits for its pause anyway.
   */
  #delayAfter(last: Turn): number {
    const { verdict, delayMs } = last.ending
    const [ownKey] = last.terms.keys
    const { key = ownKey } = verdict
    return delayMs + (key === ownKey ? 0 : this.#stages[0].get(storedKey(key)).pausedMs)
  }

  /** Reports to listeners that no call waits or is under way, and resolves the promises that `onIdle` has returned until now. */
  #reportIdle(): void {
    this.events?.emit('idle', {})
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }
}

/** How one attempt ended. */
type Outcome<T> = { readonly value: T } | { readonly error: unknown }

/** Throws what the next call of a limiter under these policies would reject with, and takes nothing from the limit. */
function tryPolicies(limiter: Limiter, policies: readonly Policy[] | undefined): void {
  const [key, cost, isNoted] = ['', 0, false] as const
  limiter[OPEN_PART](key, cost, policies ?? [], isNoted)
}

/** Checks the terms of a call, as its client or a function among the client's options has given them. */
function checkTerms({ cost, priority, tenant = '', weight }: CallTerms): void {
  checkCost(cost)
  const isNumber = typeof priority === 'number' && !Number.isNaN(priority)
  if (!isNumber) throw expectedButGot(InputError, 'INVALID_PRIORITY', 'priority must be a number', priority)
  if (typeof tenant !== 'string')
    throw expectedButGot(InputError, 'INVALID_PRIORITY', 'fair must return a text', tenant)
  if (Number.isInteger(weight) && weight >= 1 && weight <= 1000) return
  throw expectedButGot(
    InputError,
    'INVALID_PRIORITY',
    'weight must return a whole number from 1 to 1000',
    weight,
  )
}
