import type { Policy } from '@sluice/core'
import type { Answer, Ask, Booking, DatedCharge, Keyspace, Penalty, Store } from '@sluice/core/store'
import type { Operation, Known } from './operation.js'

/** Opens a store whose only notion of time is `clock`, in microseconds. */
export type OpenStore = (clock: () => number) => Store | Promise<Store>

/** A store of its own with a clock that tests set. Keys are never used twice, not even by another session. */
export class Session {
  readonly store: Store
  readonly #clock: { now: number }

  /**
   * Makes a session: a store under test, which reads the time, in microseconds, from `clock`, so that a test can set it. Private: only
   * `open` makes one, as stores may open asynchronously.
   */
  private constructor(store: Store, clock: { now: number }) {
    this.store = store
    this.#clock = clock
  }

  /** Opens a store that reads the clock of the session, in microseconds, which stands at `start` until the session moves it. */
  static async open(openStore: OpenStore, start: number): Promise<Session> {
    const clock = { now: start }
    return new Session(await openStore(() => clock.now), clock)
  }

  /** The instant at which the session's clock stands, in microseconds. */
  get now(): number {
    return this.#clock.now
  }

  /** Moves the clock to an instant in microseconds; an earlier one leaves it where it stands. Only `setBack` has it run back. */
  set now(instant: number) {
    this.#clock.now = Math.max(this.#clock.now, instant)
  }

  /** Sets the clock back by `duration` microseconds, but not to before 0. */
  setBack(duration: number): void {
    this.#clock.now = Math.max(0, this.#clock.now - duration)
  }

  /** Whether limiters may deny calls without asking the store. */
  get cachesDenials(): boolean {
    return this.store.denialCache !== undefined
  }

  /**
   * A caller of a new key. `tiers` are lists of policies of the same shapes, so they share the state of the key; each call names
   * the list that comes with it, by its index.
   */
  caller(...tiers: readonly (readonly Policy[])[]): Caller {
    return this.callerUnder([], ...tiers)
  }

  /**
   * A caller of a new key, as `caller` makes it, with a penalty for each list of policies, by its index; undefined for none. A
   * list and its penalty are opened as a keyspace of the store, whose notices are discarded. All have one name and equal shapes,
   * so the state of the key is the same in each.
   */
  callerUnder(penalties: readonly (Penalty | undefined)[], ...tiers: readonly (readonly Policy[])[]): Caller {
    const keyspaces = tiers.map((policies, i) =>
      this.store.keyspace('conformance', policies, () => {}, penalties[i]),
    )
    return new Caller(this, keyspaces, this.freshKey())
  }

  /** A key, or a name, that nothing else has used: its prefix is drawn anew for each process, as servers outlast a run. */
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

  /**
   * Makes what calls one key of a session, under the lists of policies of several tiers, such as plans of users: `keyspaces` has the
   * state under each, and `tiers` the lists. `known` are the numbers of the last answer and what was charged, from which the next
   * calls are drawn; at first it says that nothing remains.
   */
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
  async try(cost: number, tier = 0): Promise<Answer> {
    return this.#ask('try', cost, 0, tier)
  }

  /** The second step of a call on several keys: a charge now that can be undone. */
  async commit(cost: number, tier = 0): Promise<Answer> {
    return this.#ask('commit', cost, 0, tier)
  }

  /** Asks, when a booking's instant has come, whether it stands, or was lost with the state, or the key is held. */
  async confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    return this.#bookedIn.get(booking)!.confirm(booking)
  }

  /**
   * Cancels a booking in the keyspace that made it, and drops its charge from `charges`. Returns true if the key is as if it had
   * never been booked, false if its units were released instead or had been given back.
   */
  async cancel(booking: Booking): Promise<boolean> {
    this.#forgetCharge(booking)
    return this.#bookedIn.get(booking)!.cancel(booking)
  }

  /**
   * Gives the newest units of the key back, whichever call took them, under the list of policies of index `tier`. Returns how
   * many took effect.
   */
  async refund(cost: number, tier = 0): Promise<number> {
    return this.keyspaces[tier]!.correct({ kind: 'refund', key: this.key, cost })
  }

  /**
   * Gives `units` of a charge back, under the list of policies of index `tier`. Returns how many took effect. Each charge is
   * released once, so it leaves `charges`.
   */
  async release(charge: DatedCharge, units: number, tier = 0): Promise<number> {
    this.#forgetCharge(charge)
    return this.keyspaces[tier]!.correct({ kind: 'release', key: this.key, charge, units })
  }

  /** Charges units whether they fit or not. Returns how many took effect. */
  async charge(cost: number, tier = 0): Promise<number> {
    return this.keyspaces[tier]!.correct({ kind: 'charge', key: this.key, cost })
  }

  /**
   * Blocks the key for `duration` microseconds from now on; 0 ends its block. Returns 0, as no units take effect. A block
   * concerns the key under every list of policies, so any keyspace will do.
   */
  async block(duration: number): Promise<number> {
    return this.keyspaces[0]!.correct({ kind: 'block', key: this.key, duration })
  }

  /** Blocks the key as a penalty does, whose block never shortens another one. Returns 0. */
  async blockByPenalty(duration: number): Promise<number> {
    return this.keyspaces[0]!.correct({ kind: 'block', key: this.key, duration, isPenalty: true })
  }

  /** Ends a block of the key, as one that lasts 0 microseconds. */
  async unblock(): Promise<number> {
    return this.block(0)
  }

  /** Holds the key for `duration` microseconds from now on: `consume` is denied, a booking waits. Returns 0. */
  async hold(duration: number): Promise<number> {
    return this.keyspaces[0]!.correct({ kind: 'hold', key: this.key, duration })
  }

  /** Forgets all that the store knows of the key. */
  async reset(): Promise<number> {
    return this.keyspaces[0]!.correct({ kind: 'reset', key: this.key })
  }

  /**
   * Moves the clock to the instant of an operation and carries it out on the store. Returns the store's result; an answer is kept
   * in `known`. `booking` and `charge` are indexes of `bookings` and `charges`, below 0 for none. A booking that was released is
   * not cancelled too: then the result is undefined. A block and a hold last for `maxWait` microseconds.
   */
  async perform({ kind, now, tier, cost, maxWait, booking, charge }: Operation): Promise<Returned> {
    this.session.now = now
    const place = this.bookings[booking]
    if (kind === 'book') return this.book(cost, maxWait, tier)
    // A booking whose units were released is not given back once more.
    if (kind === 'cancel') return place && this.charges.includes(place) ? this.cancel(place) : undefined
    if (kind === 'release') return charge < 0 ? 0 : this.release(this.charges[charge]!, cost, tier)
    if (kind === 'block' || kind === 'hold') return this[kind](maxWait)
    return kind === 'reset' ? this.reset() : this[kind](cost, tier)
  }

  /**
   * Asks the store for a decision under the list of policies of index `tier`, and returns its answer. Keeps what later calls
   * refer to: the answer as `known`, a booking with the keyspace that made it, and the charge of an admitted call. A booking is
   * its own charge, the same object.
   */
  async #ask(ask: Ask, cost: number, maxWait: number, tier: number): Promise<Answer> {
    const keyspace = this.keyspaces[tier]!
    const answer = withUsed(await keyspace.decide(ask, this.key, cost, maxWait), keyspace.policies)
    if (answer.booking) {
      this.bookings.push(answer.booking)
      this.#bookedIn.set(answer.booking, keyspace)
    }
    if (ask !== 'peek' && ask !== 'try' && answer.reason === undefined && cost > 0) {
      const { at, now: decidedAt, epoch } = answer
      this.charges.push(answer.booking ?? { at, cost, decidedAt, epoch })
    }
    this.known = { ...answer, bookings: this.bookings.length, charges: this.#costs() }
    return answer
  }

  /**
   * Drops a charge that is given back from `charges`, so that no later operation gives it back again. Its cost leaves `known`
   * too, by which the numbers of the next operation are chosen.
   */
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

/** The answer with the field `used`, which stores leave out where it is the capacity less what remains. */
function withUsed(answer: Answer, policies: readonly Policy[]): Answer {
  const used = answer.used ?? policies.map(({ capacity }, i) => capacity - remainingUnder(answer, i))
  return { ...answer, used }
}

/**
 * The units that remain under the policy at place `index` of a list. `parts` has them second of three numbers for each policy;
 * under a single policy an answer has no `parts`.
 */
export function remainingUnder(
  { parts, remaining }: Pick<Answer, 'parts' | 'remaining'>,
  index: number,
): number {
  return parts?.[3 * index + 1] ?? remaining
}
