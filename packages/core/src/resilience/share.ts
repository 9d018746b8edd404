import type { Policy } from '../policy.js'
import type { Answer, Booking, Keyspace, MaybePromise } from '../stores/store.js'

/** A keyspace under the part of each limit that one of `processes` processes may use: rounded down, at least 1. */
export class Share implements Keyspace {
  readonly #whole: Keyspace
  readonly #processes: number
  readonly #parts = new WeakMap<readonly Policy[], readonly Policy[]>()

  constructor(whole: Keyspace, processes: number) {
    this.#whole = whole
    this.#processes = processes
  }

  consume(policies: readonly Policy[], key: string, cost: number): MaybePromise<Answer> {
    return this.#whole.consume(this.#partOf(policies), key, cost)
  }

  peek(policies: readonly Policy[], key: string, cost: number): MaybePromise<Answer> {
    return this.#whole.peek(this.#partOf(policies), key, cost)
  }

  book(policies: readonly Policy[], key: string, cost: number, maxWait: number): MaybePromise<Answer> {
    return this.#whole.book(this.#partOf(policies), key, cost, maxWait)
  }

  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    return this.#whole.confirm(booking)
  }

  cancel(booking: Booking): MaybePromise<boolean> {
    return this.#whole.cancel(booking)
  }

  refund(policies: readonly Policy[], key: string, cost: number): MaybePromise<void> {
    return this.#whole.refund(this.#partOf(policies), key, cost)
  }

  charge(policies: readonly Policy[], key: string, cost: number): MaybePromise<void> {
    return this.#whole.charge(this.#partOf(policies), key, cost)
  }

  block(key: string, duration: number): MaybePromise<void> {
    return this.#whole.block(key, duration)
  }

  hold(key: string, duration: number): MaybePromise<void> {
    return this.#whole.hold(key, duration)
  }

  reset(key: string): MaybePromise<void> {
    return this.#whole.reset(key)
  }

  #partOf(policies: readonly Policy[]): readonly Policy[] {
    let parts = this.#parts.get(policies)
    if (!parts) this.#parts.set(policies, (parts = policies.map((policy) => this.#part(policy))))
    return parts
  }

  #part(policy: Policy): Policy {
    const part = (units: number): number => Math.max(1, Math.floor(units / this.#processes))
    return Object.freeze(
      Object.assign({}, policy, { limit: part(policy.limit), capacity: part(policy.capacity) }),
    )
  }
}
