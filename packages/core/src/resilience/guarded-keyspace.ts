import type { Policy } from '../algorithms/contract/policy.js'
import type { Penalty } from '../stores/penalty.js'
import { giveBack } from '../stores/giving-back.js'
import {
  type Answer,
  type Ask,
  type Booking,
  type Caller,
  type Correction,
  isAboutKey,
  type Keyspace,
  type MaybePromise,
} from '../stores/store.js'
import type { Deadline } from './deadline.js'
import type { Denials } from './denial-cache.js'
import { failureOf, type Health, isOutage, notAsked, undecidedAnswer } from './failure.js'
import { bookPatiently } from './patient-booking.js'
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
 * failure mode. A call that the store has just denied is denied from the cache. Without a call to the store, the answer is
 * immediate.
 */
export class GuardedKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly #options: GuardedKeyspaceOptions

  constructor(options: GuardedKeyspaceOptions) {
    this.policies = options.remote.policies
    this.penalty = options.remote.penalty
    this.#options = options
  }

  /** Under 'throw' and 'deny', where nothing else decides, a `caller` that books waits for the store beyond the deadline. */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    const { denials, mode } = this.#options
    const call = { ask, key, cost, maxWait }
    if (ask === 'peek') return this.#ask(call)
    if (ask === 'book') {
      if (caller && (mode === 'throw' || mode === 'deny')) return this.#bookPatiently(call, caller)
      return this.#ask(call, (answer) => answer.booking && denials?.forget(key))
    }
    const denial = denials?.get(this.policies, key, cost)
    if (denial) return denial
    const begun = denials?.begin()
    return this.#ask(call, begun && ((answer) => denials!.record(this.policies, key, cost, begun, answer)))
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

  /** Asks the store, or falls back. `onAnswer` gets only the store's own answers. */
  #ask(call: DecideCall, onAnswer?: (answer: Answer) => unknown): MaybePromise<Answer> {
    const refusal = this.#refusal(call.key)
    if (refusal) return this.#fallBack(call, refusal, true)
    const { channel, remote, deadline, health } = this.#options
    return channel.send(
      (caller) => remote.decide(call.ask, call.key, call.cost, call.maxWait, caller),
      deadline,
      (answer) => {
        onAnswer?.(answer)
        health.decided()
        return answer
      },
      (failure) => this.#fallBack(call, failure),
    )
  }

  async #bookPatiently(call: DecideCall, caller: Caller): Promise<Answer> {
    const { channel, remote, deadline, health, denials } = this.#options
    const { ask, key, cost, maxWait } = call
    try {
      const answer = await bookPatiently(channel, deadline, {
        maxWait,
        caller,
        book: (most, sender) => remote.decide(ask, key, cost, most, sender),
        read: () => remote.decide('peek', key, 0, 0),
        giveBack: (late) => void giveBack(this, key, cost, late).catch(() => {}),
      })
      if (answer.booking) denials?.forget(key)
      health.decided()
      return answer
    } catch (failure) {
      return this.#fallBack(call, failure)
    }
  }

  #fallBack({ ask, key, cost, maxWait }: DecideCall, failure: unknown, wasRefused = false): Answer {
    const { mode, local, health } = this.#options
    if (!isOutage(failure)) throw failure
    const why = failureOf(failure)
    health.degraded(why)
    if (mode === 'throw') throw wasRefused ? notAsked(failure) : failure
    if (mode !== 'local') return undecidedAnswer(why, mode === 'allow')
    const keyspace = local()
    const answer = keyspace.decide(ask, key, cost, maxWait) as Answer // memory answers at once
    // A cost above this process's share alone fits again after the outage.
    const neverFits = this.policies.some(({ capacity }) => cost > capacity)
    if (answer.reason === 'cost' && !neverFits) return undecidedAnswer(why, false)
    const { now, at, reason, binding, remaining, resetAt, parts, booking } = answer
    const degraded = { why, allowed: reason === undefined, by: keyspace }
    return { now, at, reason, binding, remaining, resetAt, parts, booking, degraded }
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

interface DecideCall {
  readonly ask: Ask
  readonly key: string
  readonly cost: number
  readonly maxWait: number
}
