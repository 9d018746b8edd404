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
  type Receiver,
} from '../stores/store.js'
import { notAsked } from './failure.js'
import { GuardedCall, type GuardedKeyspaceOptions } from './guarded-call.js'
import { bookPatiently } from './patient-booking.js'

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
    const { mode } = this.#options
    const call = new GuardedCall(this.#options, ask, key, cost, maxWait)
    if (ask === 'book' && caller && (mode === 'throw' || mode === 'deny')) {
      return this.#bookPatiently(call, caller)
    }
    return (
      this.#decideNow(call) ??
      new Promise((answered, failed) => {
        call.receiver = { answered, failed }
      })
    )
  }

  consume(key: string, cost: number, receiver: Receiver<Answer>): Answer | undefined {
    return this.#decideNow(new GuardedCall(this.#options, 'consume', key, cost, 0, receiver))
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

  /** The answer where the store is not asked; otherwise asks it, and the call's receiver gets the answer. */
  #decideNow(call: GuardedCall): Answer | undefined {
    const { denials, channel, deadline } = this.#options
    const { kind, key, cost } = call
    if (denials && kind === 'consume') {
      const denial = denials.get(this.policies, key, cost)
      if (denial) return denial
      call.begun = denials.begin()
    }
    const refusal = this.#refusal(key)
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
        giveBack: (late) => void giveBack(this, key, cost, late).catch(() => {}),
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
