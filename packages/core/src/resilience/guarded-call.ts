import type { Answer, Ask, Keyspace, Receiver } from '../stores/store.js'
import type { Deadline } from './deadline.js'
import type { BegunCall, Denials } from './denial-cache.js'
import { failureOf, type Health, isOutage, notAsked, undecidedAnswer } from './failure.js'
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

/** One decision of a guarded store. Its receiver gets the store's answer, or that of the failure mode. */
export class GuardedCall implements StoreRequest<Answer> {
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
    health.decided()
  }

  /** The answer of the failure mode. Throws where that is the failure. */
  fallBack(failure: unknown, wasRefused = false): Answer {
    const { mode, local, health, remote } = this.options
    if (!isOutage(failure)) throw failure
    const why = failureOf(failure)
    health.degraded(why)
    if (mode === 'throw') throw wasRefused ? notAsked(failure) : failure
    if (mode !== 'local') return undecidedAnswer(why, mode === 'allow')
    const { kind, key, cost, maxWait } = this
    const keyspace = local()
    const answer = keyspace.decide(kind, key, cost, maxWait) as Answer // memory answers at once
    // A cost above this process's share alone fits again after the outage.
    const neverFits = remote.policies.some(({ capacity }) => cost > capacity)
    if (answer.reason === 'cost' && !neverFits) return undecidedAnswer(why, false)
    const { now, at, reason, binding, remaining, resetAt, parts, booking } = answer
    const degraded = { why, allowed: reason === undefined, by: keyspace }
    return { now, at, reason, binding, remaining, resetAt, parts, booking, degraded }
  }
}
