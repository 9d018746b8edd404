import type { Policy } from '../policy.js'
import type { Answer, Booking, Caller, Keyspace, MaybePromise } from '../stores/store.js'
import type { Deadline } from './deadline.js'
import { type Denials, fits } from './denials.js'
import { undecided } from './failure-mode.js'
import type { Health } from './health.js'
import type { Line } from './line.js'
import { isOutage, notAsked, failureOf } from './outage.js'

export interface GuardedKeyspaceOptions {
  /** The state in the store, and the list it was opened with. */
  readonly remote: Keyspace
  readonly policies: readonly Policy[]
  readonly line: Line
  readonly deadline: Deadline
  readonly mode: 'local' | 'allow' | 'deny' | 'throw'
  readonly health: Health
  readonly denials: Denials | undefined
  /** The same state as far as this process knows it. */
  readonly local: () => Keyspace
}

/**
 * One limiter's state in a store elsewhere, with an answer to every call: the store's, if it comes in time, or what the
 * failure mode says. What the store has just denied is not asked again. Answers at once where it need not ask.
 */
export class GuardedKeyspace implements Keyspace {
  readonly #options: GuardedKeyspaceOptions

  constructor(options: GuardedKeyspaceOptions) {
    this.#options = options
  }

  consume(policies: readonly Policy[], key: string, cost: number): MaybePromise<Answer> {
    const { denials } = this.#options
    const known = denials?.find(policies, key, cost)
    if (known) return known
    const asked = denials?.ask()
    return this.#decide(
      { policies, key, cost, ask: (keyspace, caller) => keyspace.consume(policies, key, cost, caller) },
      asked && ((answer) => denials!.note(policies, key, cost, asked, answer)),
    )
  }

  peek(policies: readonly Policy[], key: string, cost: number): MaybePromise<Answer> {
    const ask = (keyspace: Keyspace, caller?: Caller) => keyspace.peek(policies, key, cost, caller)
    return this.#decide({ policies, key, cost, ask })
  }

  book(policies: readonly Policy[], key: string, cost: number, maxWait: number): MaybePromise<Answer> {
    const ask = (keyspace: Keyspace, caller?: Caller) => keyspace.book(policies, key, cost, maxWait, caller)
    return this.#decide({ policies, key, cost, ask }, (answer) => {
      if (answer.booking) this.#options.denials?.forget(key)
    })
  }

  confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    return this.#carryOut(booking.key, (keyspace) => keyspace.confirm(booking))
  }

  cancel(booking: Booking): Promise<boolean> {
    return this.#correct(booking.key, (keyspace) => keyspace.cancel(booking))
  }

  refund(policies: readonly Policy[], key: string, cost: number): Promise<void> {
    return this.#correct(key, (keyspace) => keyspace.refund(policies, key, cost))
  }

  charge(policies: readonly Policy[], key: string, cost: number): Promise<void> {
    return this.#correct(key, (keyspace) => keyspace.charge(policies, key, cost))
  }

  block(key: string, duration: number): Promise<void> {
    return this.#bar(key, (keyspace) => keyspace.block(key, duration))
  }

  hold(key: string, duration: number): Promise<void> {
    return this.#bar(key, (keyspace) => keyspace.hold(key, duration))
  }

  reset(key: string): Promise<void> {
    return this.#bar(key, (keyspace) => keyspace.reset(key))
  }

  /** Asks the store, or what stands in for it. `heard` is told what the store itself answers. */
  #decide(call: Call, heard?: (answer: Answer) => void): MaybePromise<Answer> {
    const refusal = this.#refusal(call.key)
    if (refusal) return this.#instead(call, refusal, true)
    const { line, remote, deadline, health } = this.#options
    return line.send(
      (caller) => call.ask(remote, caller),
      deadline,
      (answer) => {
        heard?.(answer)
        health.decided()
        return answer
      },
      (failure) => this.#instead(call, failure),
    )
  }

  #instead({ policies, cost, ask }: Call, failure: unknown, wasRefused = false): Answer {
    const { mode, local, health } = this.#options
    if (!isOutage(failure)) throw failure
    const why = failureOf(failure)
    health.degraded(why)
    if (mode === 'throw') throw wasRefused ? notAsked(failure) : failure
    if (mode !== 'local') return undecided(why, mode === 'allow')
    const keyspace = local()
    const answer = ask(keyspace) as Answer // memory answers at once
    // Too much for the share of this process only: that ends with the outage.
    if (answer.reason === 'cost' && fits(policies, cost)) return undecided(why, false)
    const { now, at, reason, binding, remaining, resetAt, parts, booking } = answer
    const degraded = { why, allowed: reason === undefined, by: keyspace }
    return { now, at, reason, binding, remaining, resetAt, parts, booking, degraded }
  }

  /** Why the store is not asked; now and then it is, to see whether it is back. */
  #refusal(key: string): Error | undefined {
    const { line, remote, policies, deadline } = this.#options
    const refusal = line.refusal()
    if (refusal) line.probe(() => remote.peek(policies, key, 0), deadline)
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

  /** Says something about the key as such, which holds in this process through an outage too. */
  async #bar(key: string, act: (keyspace: Keyspace) => MaybePromise<void>): Promise<void> {
    if (this.#options.mode === 'local') await act(this.#options.local())
    return this.#correct(key, act)
  }
}

/** A call that somebody has to decide. */
interface Call {
  readonly policies: readonly Policy[]
  readonly key: string
  readonly cost: number
  readonly ask: (keyspace: Keyspace, caller?: Caller) => MaybePromise<Answer>
}
