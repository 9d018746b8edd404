import type { Policy } from '../algorithms/contract/policy.js'
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
import type { Denials } from './denials.js'
import { undecided } from './failure-mode.js'
import type { Health } from './health.js'
import type { Line } from './line.js'
import { isOutage, notAsked, failureOf } from './outage.js'
import { bookPatiently } from './wait.js'

export interface GuardedKeyspaceOptions {
  /** The state in the store. */
  readonly remote: Keyspace
  readonly line: Line
  readonly deadline: Deadline
  readonly mode: 'local' | 'allow' | 'deny' | 'throw'
  readonly health: Health
  readonly denials: Denials | undefined
  /** The same state as far as this process knows it, under the part of the limits that is its share. */
  readonly local: () => Keyspace
}

/**
 * One limiter's state in a store elsewhere, with an answer to every call: the store's, if it comes in time, or what the
 * failure mode says. What the store has just denied is not asked again. Answers at once where it need not ask.
 */
export class GuardedKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly #options: GuardedKeyspaceOptions

  constructor(options: GuardedKeyspaceOptions) {
    this.policies = options.remote.policies
    this.#options = options
  }

  /** A `caller` who books goes on listening after the deadline where nothing else decides in time: 'throw' and 'deny'. */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    const { denials, mode } = this.#options
    const call = { ask, key, cost, maxWait }
    if (ask === 'peek') return this.#ask(call)
    if (ask === 'book') {
      if (caller && (mode === 'throw' || mode === 'deny')) return this.#wait(call, caller)
      return this.#ask(call, (answer) => answer.booking && denials?.forget(key))
    }
    const known = denials?.find(this.policies, key, cost)
    if (known) return known
    const asked = denials?.ask()
    return this.#ask(call, asked && ((answer) => denials!.note(this.policies, key, cost, asked, answer)))
  }

  confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    return this.#carryOut(booking.key, (keyspace) => keyspace.confirm(booking))
  }

  cancel(booking: Booking): Promise<boolean> {
    return this.#correct(booking.key, (keyspace) => keyspace.cancel(booking))
  }

  /** A block, a hold and a reset say something about the key as such, which holds in this process through an outage. */
  async correct(change: Correction): Promise<number> {
    if (isAboutKey(change) && this.#options.mode === 'local') await this.#options.local().correct(change)
    return this.#correct(change.key, (keyspace) => keyspace.correct(change))
  }

  /** Asks the store, or what stands in for it. `heard` gets what the store itself answers. */
  #ask(call: Call, heard?: (answer: Answer) => unknown): MaybePromise<Answer> {
    const refusal = this.#refusal(call.key)
    if (refusal) return this.#instead(call, refusal, true)
    const { line, remote, deadline, health } = this.#options
    return line.send(
      (caller) => remote.decide(call.ask, call.key, call.cost, call.maxWait, caller),
      deadline,
      (answer) => {
        heard?.(answer)
        health.decided()
        return answer
      },
      (failure) => this.#instead(call, failure),
    )
  }

  async #wait(call: Call, caller: Caller): Promise<Answer> {
    const { line, remote, deadline, health, denials } = this.#options
    const { ask, key, cost, maxWait } = call
    try {
      const answer = await bookPatiently(line, deadline, {
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
      return this.#instead(call, failure)
    }
  }

  #instead({ ask, key, cost, maxWait }: Call, failure: unknown, wasRefused = false): Answer {
    const { mode, local, health } = this.#options
    if (!isOutage(failure)) throw failure
    const why = failureOf(failure)
    health.degraded(why)
    if (mode === 'throw') throw wasRefused ? notAsked(failure) : failure
    if (mode !== 'local') return undecided(why, mode === 'allow')
    const keyspace = local()
    const answer = keyspace.decide(ask, key, cost, maxWait) as Answer // memory answers at once
    // Too much for the share of this process only: that ends with the outage.
    const isTooMuch = this.policies.some(({ capacity }) => cost > capacity)
    if (answer.reason === 'cost' && !isTooMuch) return undecided(why, false)
    const { now, at, reason, binding, remaining, resetAt, parts, booking } = answer
    const degraded = { why, allowed: reason === undefined, by: keyspace }
    return { now, at, reason, binding, remaining, resetAt, parts, booking, degraded }
  }

  /** Why the store is not asked; now and then it is, to see whether it is back. */
  #refusal(key: string): Error | undefined {
    const { line, remote, deadline } = this.#options
    const refusal = line.refusal()
    if (refusal) line.probe(() => remote.decide('peek', key, 0, 0), deadline)
    return refusal
  }

  async #carryOut<T>(key: string, act: (keyspace: Keyspace) => MaybePromise<T>): Promise<T> {
    const refusal = this.#refusal(key)
    if (refusal) throw notAsked(refusal)
    const { line, remote, deadline } = this.#options
    return line.send(() => act(remote), deadline)
  }

  /** Changes what was denied before. One that failed may have been carried out all the same. */
  async #correct<T>(key: string, act: (keyspace: Keyspace) => MaybePromise<T>): Promise<T> {
    try {
      return await this.#carryOut(key, act)
    } finally {
      this.#options.denials?.forget(key)
    }
  }
}

/** A call that somebody has to decide. */
interface Call {
  readonly ask: Ask
  readonly key: string
  readonly cost: number
  readonly maxWait: number
}
