import type { Policy } from '@sluice/core'
import type { Answer, Ask, Booking, DatedCharge, Keyspace, Penalty, Store } from '@sluice/core/store'
import type { Operation, Known } from './operation.js'

/** Opens a store whose only notion of time is `clock`, in microseconds. */
export type OpenStore = (clock: () => number) => Store | Promise<Store>

/** A store of its own with a clock that tests set. Keys are never used twice, not even by another session. */
export class Session {
  readonly store: Store
  readonly #clock: { now: number }

  /** Made by `open`, as stores may open asynchronously. */
  private constructor(store: Store, clock: { now: number }) {
    this.store = store
    this.#clock = clock
  }

  /** Opens a store on a clock of the session, which stands at `start`. */
  static async open(openStore: OpenStore, start: number): Promise<Session> {
    const clock = { now: start }
    return new Session(await openStore(() => clock.now), clock)
  }

  /** The instant at which the session's clock stands, in microseconds. */
  get now(): number {
    return this.#clock.now
  }

  /** Never runs back. */
  set now(instant: number) {
    this.#clock.now = Math.max(this.#clock.now, instant)
  }

  /** Whether limiters may deny calls without asking the store. */
  get cachesDenials(): boolean {
    return this.store.denialCache !== undefined
  }

  /** A new key. `tiers` are lists of policies of the same shapes; calls name the one that comes with them. */
  caller(...tiers: readonly (readonly Policy[])[]): Caller {
    return this.callerUnder([], ...tiers)
  }

  /** A caller of a new key, whose lists of policies each have the penalty of the same index. */
  callerUnder(penalties: readonly (Penalty | undefined)[], ...tiers: readonly (readonly Policy[])[]): Caller {
    const keyspaces = tiers.map((policies, i) =>
      this.store.keyspace('conformance', policies, () => {}, penalties[i]),
    )
    return new Caller(this, keyspaces, this.freshKey())
  }

  /** A key, or a name, that no other part of this store has. */
  freshKey(this: void): string {
    return `${run}-${++keys}`
  }

  /** Closes the store. */
  async close(): Promise<void> {
    await this.store.close()
  }
}

const run = `${process.pid}-${process.hrtime.bigint()}`
let keys = 0

/** The result of an operation: an answer, whether a place was given back, or the units of a correction. */
export type Returned = Answer | boolean | number | void

/** One key and what has been said about it. */
export class Caller {
  readonly tiers: readonly (readonly Policy[])[]
  readonly bookings: Booking[] = []
  /** The charges that gave nothing back yet, oldest first. */
  readonly charges: DatedCharge[] = []
  known: Known
  readonly #bookedIn = new Map<Booking, Keyspace>()

  /** A caller of one key, under one list of policies in each keyspace. */
  constructor(
    readonly session: Session,
    readonly keyspaces: readonly Keyspace[],
    readonly key: string,
  ) {
    this.tiers = keyspaces.map(({ policies }) => policies)
    this.known = { at: session.now, remaining: 0, resetAt: session.now, bookings: 0, charges: [] }
  }

  /** Charges a cost now, or is denied. `tier` is the index of the list of policies that comes with the call. */
  async consume(cost: number, tier = 0): Promise<Answer> {
    return this.#ask('consume', cost, 0, tier)
  }

  /** The answer that `consume` would get; nothing is charged. */
  async peek(cost: number, tier = 0): Promise<Answer> {
    return this.#ask('peek', cost, 0, tier)
  }

  /** Charges a cost at the first instant at which it fits, within `maxWait` microseconds, or is denied. */
  async book(cost: number, maxWait: number, tier = 0): Promise<Answer> {
    return this.#ask('book', cost, maxWait, tier)
  }

  /** The first step of a call on several keys: the answer without a charge. */
  async try(cost: number): Promise<Answer> {
    return this.#ask('try', cost, 0, 0)
  }

  /** The second step of a call on several keys: a charge now that can be undone. */
  async reserve(cost: number): Promise<Answer> {
    return this.#ask('reserve', cost, 0, 0)
  }

  /** Asks, when a booking's instant has come, whether it stands, or was lost with the state, or the key is held. */
  async confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    return this.#bookedIn.get(booking)!.confirm(booking)
  }

  /** Cancels a booking in the keyspace that made it. */
  async cancel(booking: Booking): Promise<boolean> {
    this.#forgetCharge(booking)
    return this.#bookedIn.get(booking)!.cancel(booking)
  }

  /** Gives the newest units of the key back, whichever call took them. Returns how many took effect. */
  async refund(cost: number, tier = 0): Promise<number> {
    return this.keyspaces[tier]!.correct({ kind: 'refund', key: this.key, cost })
  }

  /** Gives units of a charge back, for the first and only time. */
  async release(charge: DatedCharge, units: number, tier = 0): Promise<number> {
    this.#forgetCharge(charge)
    return this.keyspaces[tier]!.correct({ kind: 'release', key: this.key, charge, units })
  }

  /** Charges units whether they fit or not. Returns how many took effect. */
  async charge(cost: number, tier = 0): Promise<number> {
    return this.keyspaces[tier]!.correct({ kind: 'charge', key: this.key, cost })
  }

  /** Blocks the key for so many microseconds. With `isPenalty` it is the block of a penalty. */
  async block(duration: number, isPenalty?: boolean): Promise<number> {
    const penalty = isPenalty === undefined ? {} : { isPenalty }
    return this.keyspaces[0]!.correct({ kind: 'block', key: this.key, duration, ...penalty })
  }

  /** Ends a block of the key, as one that lasts 0 microseconds. */
  async unblock(): Promise<number> {
    return this.block(0)
  }

  /** Holds the key for so many microseconds: `consume` is denied, a booking waits. */
  async hold(duration: number): Promise<number> {
    return this.keyspaces[0]!.correct({ kind: 'hold', key: this.key, duration })
  }

  /** Forgets all that the store knows of the key. */
  async reset(): Promise<number> {
    return this.keyspaces[0]!.correct({ kind: 'reset', key: this.key })
  }

  /** Moves time to the operation's instant and carries it out. Returns the store's result, and remembers answers in `known`. */
  async perform({ kind, now, tier, cost, maxWait, booking, charge }: Operation): Promise<Returned> {
    this.session.now = now
    const place = this.bookings[booking]
    if (kind === 'book') return this.book(cost, maxWait, tier)
    // A place whose units were released is not given back once more.
    if (kind === 'cancel') return place && this.charges.includes(place) ? this.cancel(place) : undefined
    if (kind === 'release') return charge < 0 ? 0 : this.release(this.charges[charge]!, cost, tier)
    if (kind === 'block' || kind === 'hold') return this[kind](maxWait)
    return kind === 'reset' ? this.reset() : this[kind](cost, tier)
  }

  /** Makes a call, and notes its answer, its booking and its charge. */
  async #ask(ask: Ask, cost: number, maxWait: number, tier: number): Promise<Answer> {
    const keyspace = this.keyspaces[tier]!
    const answer = await keyspace.decide(ask, this.key, cost, maxWait)
    if (answer.booking) {
      this.bookings.push(answer.booking)
      this.#bookedIn.set(answer.booking, keyspace)
    }
    if (ask !== 'peek' && ask !== 'try' && answer.reason === undefined && cost > 0) {
      this.charges.push(answer.booking ?? { at: answer.at, cost, decidedAt: answer.now })
    }
    this.known = { ...answer, bookings: this.bookings.length, charges: this.#costs() }
    return answer
  }

  /** Forgets a charge that is given back. */
  #forgetCharge(charge: DatedCharge): void {
    const i = this.charges.indexOf(charge)
    if (i >= 0) this.charges.splice(i, 1)
    this.known = { ...this.known, charges: this.#costs() }
  }

  /** The costs of the charges that gave nothing back yet, oldest first. */
  #costs(): readonly number[] {
    return this.charges.map(({ cost }) => cost)
  }
}
