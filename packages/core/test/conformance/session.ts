import type { Policy } from '../../src/policy.js'
import type { Answer, Booking, Keyspace, Store } from '../../src/stores/store.js'
import type { Deed, Told } from './deed.js'

/** Opens a store whose only notion of time is `clock`, in microseconds. */
export type OpenStore = (clock: () => number) => Store | Promise<Store>

/** A store of its own with a clock that tests set. Keys are never used twice, not even by another session. */
export class Session {
  #now: number
  #store!: Store

  private constructor(start: number) {
    this.#now = start
  }

  static async open(openStore: OpenStore, start: number): Promise<Session> {
    const session = new Session(start)
    session.#store = await openStore(() => session.#now)
    return session
  }

  get now(): number {
    return this.#now
  }

  /** Never runs back. */
  set now(instant: number) {
    this.#now = Math.max(this.#now, instant)
  }

  /** A new key. `tiers` are lists of policies of the same shapes; calls name the one that comes with them. */
  caller(...tiers: readonly (readonly Policy[])[]): Caller {
    return new Caller(
      this,
      this.#store.keyspace('conformance', tiers[0]!, () => {}),
      tiers,
      freshKey(),
    )
  }

  async close(): Promise<void> {
    await this.#store.close()
  }
}

const run = `${process.pid}-${process.hrtime.bigint()}`
let keys = 0

function freshKey(): string {
  return `${run}-${++keys}`
}

/** One key and what has been said about it. */
export class Caller {
  readonly bookings: Booking[] = []
  told: Told

  constructor(
    readonly session: Session,
    readonly keyspace: Keyspace,
    readonly tiers: readonly (readonly Policy[])[],
    readonly key: string,
  ) {
    this.told = { at: session.now, remaining: 0, resetAt: session.now, bookings: 0 }
  }

  async consume(cost: number, tier = 0): Promise<Answer> {
    return this.#heard(await this.keyspace.consume(this.tiers[tier]!, this.key, cost))
  }

  async peek(cost: number, tier = 0): Promise<Answer> {
    return this.#heard(await this.keyspace.peek(this.tiers[tier]!, this.key, cost))
  }

  async book(cost: number, maxWait: number, tier = 0): Promise<Answer> {
    return this.#heard(await this.keyspace.book(this.tiers[tier]!, this.key, cost, maxWait))
  }

  async refund(cost: number, tier = 0): Promise<void> {
    await this.keyspace.refund(this.tiers[tier]!, this.key, cost)
  }

  async charge(cost: number, tier = 0): Promise<void> {
    await this.keyspace.charge(this.tiers[tier]!, this.key, cost)
  }

  /** Moves time to the deed's instant and does it. Answers are told, other deeds return what the store returns. */
  async perform({ kind, now, tier, cost, maxWait, booking }: Deed): Promise<Answer | boolean | void> {
    this.session.now = now
    const place = this.bookings[booking]
    if (kind === 'book') return this.book(cost, maxWait, tier)
    if (kind === 'cancel') return place ? this.keyspace.cancel(place) : undefined
    if (kind === 'block' || kind === 'hold') return this.keyspace[kind](this.key, maxWait)
    if (kind === 'reset') return this.keyspace.reset(this.key)
    return this[kind](cost, tier)
  }

  #heard(answer: Answer): Answer {
    if (answer.booking) this.bookings.push(answer.booking)
    this.told = { ...answer, bookings: this.bookings.length }
    return answer
  }
}
