import type { Policy } from '../algorithms/contract/policy.js'
import type { Penalty } from '../stores/penalty.js'
import {
  type Answer,
  type Ask,
  type Booking,
  type Caller,
  type Correction,
  isAboutKey,
  type Keyspace,
  type MaybePromise,
  type Receiver,
} from '../stores/store.js'
import type { Deadline } from './deadline.js'
import type { BegunCall, Denials } from './denial-cache.js'
import { degradedAnswer, failureOf, type Health, isOutage, notAsked, undecidedAnswer } from './failure.js'
import { bookPatiently, giveBackLate } from './patient-booking.js'
import { type PendingCall, receive, type StoreRequest } from './pending-call.js'
import type { StoreChannel } from './store-channel.js'

export interface GuardedKeyspaceOptions {
  /** The state in the store. */
  readonly remote: Keyspace
  readonly channel: StoreChannel
  readonly deadline: Deadline
  readonly mode: 'local' | 'allow' | 'deny' | 'throw'
  readonly health: Health
  readonly denials: Denials | undefined
  /** The state that this process keeps in an outage, under its share of the limits. */
  readonly local: () => Keyspace
}

/**
 * One limiter's state in a store elsewhere. Every call gets an answer: the store's if it comes in time, else that of the
 * failure mode. A call that the store has just denied is denied from the cache, and a cost above the capacity is denied
 * without the store. Without a call to the store, the answer is immediate.
 */
export class GuardedKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly #options: GuardedKeyspaceOptions
  /** The largest cost that ever fits. */
  readonly #capacity: number

  constructor(options: GuardedKeyspaceOptions) {
    this.policies = options.remote.policies
    this.#capacity = Math.min(...this.policies.map(({ capacity }) => capacity))
    this.penalty = options.remote.penalty
    this.#options = options
  }

  /** Under 'throw' and 'deny', where nothing else decides, a `caller` that books waits for the store beyond the deadline. */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    const { mode } = this.#options
    const denial = ask === 'peek' ? undefined : this.#denial(ask, key, cost)
    if (denial) return denial
    const call = new GuardedCall(this.#options, ask, key, cost, maxWait)
    const isAlone = mode === 'throw' || mode === 'deny'
    if (ask === 'book' && caller && isAlone) return this.#bookPatiently(call, caller)
    const known = this.#ask(call)
    return known ?? new Promise((answered, failed) => (call.receiver = { answered, failed }))
  }

  consume(key: string, cost: number, receiver: Receiver<Answer>): Answer | undefined {
    const denial = this.#denial('consume', key, cost)
    return denial ?? this.#ask(new GuardedCall(this.#options, 'consume', key, cost, 0, receiver))
  }

  confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    return this.#carryOut(booking.key, (keyspace) => keyspace.confirm(booking))
  }

  cancel(booking: Booking): Promise<boolean> {
    return this.#correct(booking.key, (keyspace) => keyspace.cancel(booking))
  }

  /** A block, a hold and a reset concern the key and not units, so they also apply to the state of an outage. */
  async correct(change: Correction): Promise<number> {
    if (isAboutKey(change) && this.#options.mode === 'local') await this.#options.local().correct(change)
    return this.#correct(change.key, (keyspace) => keyspace.correct(change))
  }

  /** The denial of a call for which the store need not be asked. */
  #denial(ask: Ask, key: string, cost: number): Answer | undefined {
    const { policies } = this
    const { denials } = this.#options
    if (cost > this.#capacity) return neverFits(policies, cost, denials?.newest(policies, key))
    return ask === 'consume' ? denials?.get(policies, key, cost) : undefined
  }

  /** The answer where the store cannot be asked; otherwise asks it, and the call's receiver gets the answer. */
  #ask(call: GuardedCall): Answer | undefined {
    const { denials, channel, deadline } = this.#options
    if (denials && call.kind === 'consume') call.begun = denials.begin()
    const refusal = this.#refusal(call.key)
    if (refusal) return call.fallBack(refusal, true)
    channel.submit(call, deadline)
    return undefined
  }

  async #bookPatiently(call: GuardedCall, caller: Caller): Promise<Answer> {
    const { channel, remote, deadline } = this.#options
    const { kind, key, cost, maxWait } = call
    try {
      const answer = await bookPatiently(channel, deadline, {
        maxWait,
        caller,
        book: (most, sender) => remote.decide(kind, key, cost, most, sender),
        read: () => remote.decide('peek', key, 0, 0),
        giveBack: (late) => giveBackLate(this.#options, key, cost, late),
      })
      call.decided(answer)
      return answer
    } catch (failure) {
      return call.fallBack(failure)
    }
  }

  /** Why the store is not asked. While the circuit is open, the store is probed. */
  #refusal(key: string): Error | undefined {
    const { channel, remote, deadline } = this.#options
    const refusal = channel.refusal()
    if (refusal) channel.probeIfOpen(() => remote.decide('peek', key, 0, 0), deadline)
    return refusal
  }

  async #carryOut<T>(key: string, act: (keyspace: Keyspace) => MaybePromise<T>): Promise<T> {
    const refusal = this.#refusal(key)
    if (refusal) throw notAsked(refusal)
    const { channel, remote, deadline } = this.#options
    return channel.send(() => act(remote), deadline)
  }

  /** Carries out a correction, and removes the key's cached denials even if it failed: it may have been carried out. */
  async #correct<T>(key: string, act: (keyspace: Keyspace) => MaybePromise<T>): Promise<T> {
    try {
      return await this.#carryOut(key, act)
    } finally {
      this.#options.denials?.forget(key)
    }
  }
}

/**
 * The denial of a cost above the capacity. What remains of the key is that of a cached denial, `known`; without one it is
 * reported as 0.
 */
function neverFits(policies: readonly Policy[], cost: number, known: Answer | undefined): Answer {
  const { now, remaining, resetAt } = known ?? { now: 0, remaining: 0, resetAt: 0 }
  const states = policies.map(({ capacity }, i) => {
    const [left, fullAt] = [known?.parts?.[3 * i + 1] ?? remaining, known?.parts?.[3 * i + 2] ?? resetAt]
    const at = cost > capacity ? Infinity : cost > left ? fullAt : now
    return [at, left, fullAt] as const
  })
  return {
    now,
    at: Infinity,
    reason: 'cost',
    binding: states.findIndex(([at]) => at === Infinity),
    remaining,
    resetAt,
    parts: policies.length > 1 ? states.flat() : undefined,
    booking: undefined,
    from: known ? 'cache' : 'none',
  }
}

/** One decision of a guarded store. Its receiver gets the store's answer, or that of the failure mode. */
class GuardedCall implements StoreRequest<Answer> {
  /** In the denial cache. */
  begun: BegunCall | undefined = undefined

  /** `receiver` is set before the call has an outcome. */
  constructor(
    readonly options: GuardedKeyspaceOptions,
    readonly kind: Ask,
    readonly key: string,
    readonly cost: number,
    readonly maxWait: number,
    public receiver?: Receiver<Answer>,
  ) {}

  ask(pending: PendingCall<Answer>): void {
    const { kind, key, cost, maxWait } = this
    const { remote } = this.options
    const answer =
      kind === 'consume' && remote.consume
        ? remote.consume(key, cost, pending, pending)
        : remote.decide(kind, key, cost, maxWait, pending)
    if (answer) receive(answer, pending)
  }

  answered(answer: Answer): void {
    try {
      this.decided(answer)
    } catch (error) {
      return this.receiver!.failed(error)
    }
    this.receiver!.answered(answer)
  }

  failed(failure: unknown): void {
    let answer: Answer
    try {
      answer = this.fallBack(failure)
    } catch (error) {
      return this.receiver!.failed(error)
    }
    this.receiver!.answered(answer)
  }

  /** Records an answer of the store itself. */
  decided(answer: Answer): void {
    const { denials, health, remote } = this.options
    if (this.begun) denials!.record(remote.policies, this.key, this.cost, this.begun, answer)
    else if (answer.booking) denials?.forget(this.key)
    if (health.outage) health.decided()
  }

  /** The answer of the failure mode. Throws where that is the failure. */
  fallBack(failure: unknown, wasRefused = false): Answer {
    const { mode, local, health, remote } = this.options
    if (!isOutage(failure)) throw failure
    const why = failureOf(failure)
    health.degraded(failure)
    if (mode === 'throw') throw wasRefused ? notAsked(failure) : failure
    if (mode !== 'local') return undecidedAnswer(why, mode === 'allow')
    const keyspace = local()
    const answer = keyspace.decide(this.kind, this.key, this.cost, this.maxWait) as Answer // memory answers at once
    const neverFits = remote.policies.some(({ capacity }) => this.cost > capacity)
    return degradedAnswer(why, answer, keyspace, neverFits)
  }
}
