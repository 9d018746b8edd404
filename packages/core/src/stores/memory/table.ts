import type { Policy, View } from '../../algorithms/contract/policy.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Booking, Correction, DatedCharge, Reason, Report } from '../store.js'
import { Bookings, type MemoryBooking } from './bookings.js'
import { CHUNK_ROWS, type Chunk, type Chunks } from './chunks.js'
import { fitsWithin, MemoryAnswer, type PlainCalls, plainCallsOf } from './plain-calls.js'
import { type PolicyList, PolicyLists } from './policy-lists.js'
import { reasonOf, Refusals, Restrictions } from './restrictions.js'
import { Cursor } from './rows.js'

/** The owner of a table, which bounds the number of keys. */
export interface TableOwner {
  /** The rows of all its tables. */
  readonly chunks: Chunks<Table>
  now(): number
  /** How far its clock stands behind `now`, which never runs back, in microseconds. */
  readonly behind: number
  /** A table calls this before it adds a key. Evicts another key, of any table, if the store is full. */
  adding(now: number): void
  /** A table calls this after it added a key. */
  added(table: Table, row: number): void
  /** A table calls this after it removed a key. */
  removed(): void
}

/**
 * The state of every key of one limiter under lists of the same shapes. Lists may differ in limits, so each call passes the
 * list of its keyspace.
 */
export class Table {
  readonly cursor: Cursor
  readonly restrictions = new Restrictions()
  readonly bookings = new Bookings()
  readonly refusals = new Refusals()
  readonly lists: PolicyLists
  /** Set when the store dropped the table because it held no key; another table may have its shapes now. */
  isDropped = false
  /** The callbacks of its keyspaces, which receive notices about its keys. */
  readonly reports = new Set<Report>()
  /** Whether it was reported that keys are forgotten. */
  hasWarned = false
  /** The `maxKeys` that the last warning named as needed; 0 before one. */
  neededKeys = 0
  readonly #chunks: Chunk<Table>[] = []
  readonly #plain: PlainCalls | undefined

  /** A table without keys, for lists of policies of the shapes of `policies`. */
  constructor(
    policies: readonly Policy[],
    private readonly owner: TableOwner,
  ) {
    this.cursor = new Cursor(policies)
    this.lists = new PolicyLists(policies)
    this.#plain = plainCallsOf(policies, this.cursor, this.restrictions, this.lists)
  }

  /** Decides one call. A key without a row is decided on row 0, which is blank, but gets a row if the call surely passes. */
  decide(list: PolicyList, ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const now = this.owner.now()
    let row = this.cursor.rows.find(key)
    // They charge a call which fits now, and need no undo record for it. What few calls do lies in other functions: V8 compiles
    // a path into one piece only while its functions are small.
    const isPlain = cost > 0 && (ask === 'consume' || ask === 'book')
    if (row === 0 && isPlain) row = this.#addIfFits(list, key, now, cost)
    if (row !== 0 && isPlain && (this.bookings.size === 0 || !this.bookings.has(row))) {
      this.cursor.select(row)
      const answer = this.#plain?.decide(list, row, now, cost, maxWait)
      if (answer !== undefined) return this.#dated(answer)
    }
    return this.#dated(this.#decideAny(new OpenCall(list, key, row, now, cost), ask, maxWait))
  }

  /**
   * Gives a key without state a row if its call surely passes, and returns the row; 0 if it may be denied, so that denials take
   * no memory.
   */
  #addIfFits(list: PolicyList, key: string, now: number, cost: number): number {
    return this.#plain && fitsWithin(list.policies, cost) ? this.#add(key, now) : 0
  }

  /**
   * Returns the answer; a denial with the clock's own time as `now`. If the clock was set back, the store's time stands still until
   * it has caught up, and a denied caller has to wait for that too.
   */
  #dated(answer: Answer): Answer {
    if (answer.reason === undefined) return answer
    const { behind } = this.owner
    return behind > 0 ? { ...answer, now: answer.now - behind } : answer
  }

  /**
   * Whether a call of this cost passes now; charges nothing. False also for a key with a block, a hold or a booking, which only
   * `decide` judges.
   */
  fits({ policies }: PolicyList, key: string, cost: number): boolean {
    const now = this.owner.now()
    const row = this.cursor.rows.find(key)
    if (this.bookings.has(row) || this.restrictions.has(row, now)) return false
    this.cursor.select(row)
    return this.cursor.fits(policies, now, cost)
  }

  /** Decides a call that is not plain: finds its instant, charges it or counts the refusal, and makes the answer. */
  #decideAny(call: OpenCall, ask: Ask, maxWait: number): Answer {
    const { row, now, cost } = call
    const { penalty } = call.list
    this.cursor.select(row)
    const restriction = this.restrictions.has(row, now) ? this.restrictions.lastOf(row) : undefined
    call.restrictedUntil = restriction ? Math.max(restriction.blockedUntil, restriction.heldUntil) : now
    this.#findInstant(call)
    const reason = reasonOf(restriction, now, call.at, maxWait)
    let booking: MemoryBooking | undefined
    let isRefusalCounted = false
    const charges = ask !== 'peek' && ask !== 'try'
    if (reason === undefined && cost > 0 && charges) booking = this.#charge(call, ask === 'reserve')
    else if (reason === 'limit' && row !== 0 && ask !== 'peek' && ask !== 'reserve') {
      this.cursor.rows.record(row, call.list.number, true)
      isRefusalCounted = penalty !== undefined
      if (penalty) this.#penalize(call, penalty)
    }
    const answer = this.#answer(call, reason, booking)
    const { blockedUntil } = this.restrictions.lastOf(row)
    if (reason !== undefined && blockedUntil > now) answer.blockedUntil = blockedUntil
    if (isRefusalCounted) this.refusals.forgetAt(row, answer.resetAt + penalty!.forgetAfter)
    return answer
  }

  /**
   * Finds the instant at which the call passes: the latest of those at which the policies admit it. No call passes
   * before the end of a block or hold, nor a call with a cost before the last booking.
   */
  #findInstant(call: OpenCall): void {
    const { row, cost, restrictedUntil } = call
    const { policies } = call.list
    const { states, instants } = this.cursor
    const from = cost === 0 ? restrictedUntil : Math.max(restrictedUntil, this.bookings.lastOf(row))
    let at = from
    let binding = 0
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      const earliest = cost === 0 ? from : policy.algorithm.earliest(states[i]!, policy, from, cost)
      instants[i] = earliest
      if (earliest > at) {
        at = earliest
        binding = i
      }
    }
    call.at = at
    call.binding = binding
  }

  /**
   * Charges the call at its instant. Returns the booking if that is after now, or if the charge may be undone: it holds what the
   * charge replaced. Any other charge is written over, so that earlier bookings of the key cannot be undone exactly any more.
   */
  #charge(call: OpenCall, mayBeUndone: boolean): MemoryBooking | undefined {
    const { list, key, now, cost, at } = call
    const { cursor, bookings } = this
    const row = call.row || this.#add(key, now)
    call.row = row
    cursor.rows.record(row, list.number, false)
    const isFull = this.#isFull(list.policies, row, now)
    const isBooked = at > now || mayBeUndone
    const undo = isBooked ? bookings.open(row, at, cursor.cells(), cursor.rings()) : undefined
    if (isFull) cursor.renew(list.policies, now)
    cursor.admit(list.policies, at, cost)
    if (!undo) {
      bookings.bumpVersion(row)
      return undefined
    }
    for (const ring of cursor.rings()) ring.seal()
    return { key, at, cost, decidedAt: now, undo, isCancelled: false }
  }

  /**
   * Whether a charge finds the key full. Such a key is charged as one that was never used, so that it makes no difference whether
   * its row was freed.
   */
  #isFull(policies: readonly Policy[], row: number, now: number): boolean {
    return this.bookings.lastOf(row) <= now && this.cursor.isFull(policies, now)
  }

  /**
   * Counts a refused call. If the penalty then blocks the key, the call passes no earlier than the block ends; a penalty after which
   * the key starts fresh also clears its state and its bookings.
   */
  #penalize(call: OpenCall, penalty: Penalty): void {
    const { instants } = this.cursor
    const until = this.refusals.penalize(call.row, penalty, call.now, this.restrictions, instants)
    call.restrictedUntil = Math.max(call.restrictedUntil, until)
    if (until > call.now && penalty.then === 'fresh') {
      this.bookings.discard(call.row)
      this.bookings.forget(call.row)
      this.cursor.clear()
      call.at = call.now
    }
    call.at = Math.max(call.at, call.restrictedUntil) // to which `penalize` has moved the instants of the policies that refuse
    call.binding = instants.indexOf(call.at)
  }

  /**
   * Makes the answer. While the key is blocked, held or booked ahead, `remaining` is 0 and `resetAt` that of the state
   * then.
   */
  #answer(call: OpenCall, reason: Reason | undefined, booking: Booking | undefined): MemoryAnswer {
    const { row, now, at, restrictedUntil } = call
    const { policies } = call.list
    const { states, instants } = this.cursor
    const openFrom = Math.max(restrictedUntil, this.bookings.lastOf(row))
    const parts: number[] | undefined = policies.length > 1 ? [] : undefined
    let least = Infinity
    let { binding } = call
    let resetAt = restrictedUntil
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      policy.algorithm.view(states[i]!, policy, Math.max(now, openFrom), view)
      if (openFrom > now) view.remaining = 0
      if (view.remaining < least) {
        least = view.remaining
        if (reason === undefined) binding = i
      }
      if (view.resetAt > resetAt) resetAt = view.resetAt
      parts?.push(instants[i]!, view.remaining, view.resetAt)
    }
    const answer = new MemoryAnswer(now, at, reason, least, resetAt)
    answer.binding = binding
    answer.parts = parts
    answer.booking = booking
    return answer
  }

  /** How a booking stands: 'lost' with its key's state, 'held' if the key is blocked or held now. */
  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    const now = this.owner.now()
    if ((booking as MemoryBooking).undo.epoch.isLost) return 'lost'
    return this.restrictions.has(this.cursor.rows.find(booking.key), now) ? 'held' : 'stands'
  }

  /**
   * Cancels a booking, once. Returns true if the key's state is as it was before it. Otherwise another call has written since: then
   * only those units of the booking are given back that still count.
   */
  cancel(policies: readonly Policy[], booking: Booking): boolean {
    const now = this.owner.now()
    const charge = booking as MemoryBooking
    const { key, cost, undo } = charge
    if (charge.isCancelled) return false
    charge.isCancelled = true
    const row = this.cursor.rows.find(key)
    if (this.bookings.undo(row, undo)) {
      this.cursor.select(row)
      this.cursor.restore(undo)
      return true
    }
    if (!undo.epoch.isLost) this.#release(policies, row, charge, cost, now)
    return false
  }

  /**
   * Applies a correction to the key's state: a refund, release, charge, block, hold or reset. Returns the units that took
   * effect; 0 for the last three.
   */
  correct(list: PolicyList, change: Correction): number {
    const now = this.owner.now()
    const { key } = change
    let row = this.cursor.rows.find(key)
    switch (change.kind) {
      case 'refund':
        if (row === 0) return 0
        this.cursor.select(row)
        this.bookings.bumpVersion(row)
        return this.cursor.admit(list.policies, now, -change.cost)
      case 'release':
        return this.#release(list.policies, row, change.charge, change.units, now)
      case 'charge':
        row = this.rowFor(key, now, list, row)
        this.bookings.bumpVersion(row)
        if (this.#isFull(list.policies, row, now)) this.cursor.renew(list.policies, now)
        return this.cursor.admit(list.policies, Math.max(now, this.bookings.lastOf(row)), change.cost)
      case 'block': {
        const { duration, isPenalty = false } = change
        if (duration === 0 && row === 0) return 0
        this.restrictions.block(this.rowFor(key, now, list, row), now, now + duration, isPenalty)
        return 0
      }
      case 'hold':
        this.restrictions.hold(this.rowFor(key, now, list, row), now + change.duration)
        return 0
      case 'reset':
        if (row !== 0) this.discard(row)
        return 0
    }
  }

  /**
   * Gives back up to `units` units of a charge of the key in `row`, as far as they still count. Returns how many. Without a row, or
   * if the state began after the charge was decided, none of them is in the state.
   */
  #release(policies: readonly Policy[], row: number, charge: DatedCharge, units: number, now: number) {
    const { cursor, bookings } = this
    if (row === 0) return 0
    cursor.select(row)
    if (charge.decidedAt < cursor.born) return 0
    bookings.bumpVersion(row)
    return cursor.release(policies, Math.max(now, bookings.lastOf(row)), charge, units)
  }

  /**
   * Removes the key in `row` though its state still counts. Its bookings are marked as lost, so that calls that wait for them
   * book again.
   */
  discard(row: number): void {
    this.bookings.discard(row)
    this.free(row)
  }

  /** Discards the state of every key. */
  discardAll(): void {
    const { rows } = this.cursor
    for (let row = rows.top; rows.size > 0; row--) if (rows.keyAt(row) !== undefined) this.discard(row)
  }

  /**
   * Frees a row, with all that is known of its key: for a key whose allowance is full again, as any other goes through `discard`. With
   * its last key the table gives up its chunks of rows.
   */
  free(row: number): void {
    this.bookings.forget(row)
    this.restrictions.clear(row)
    this.refusals.clear(row)
    this.cursor.rows.free(row)
    if (this.cursor.rows.size === 0)
      for (const chunk of this.#chunks.splice(0)) this.owner.chunks.remove(chunk)
    this.owner.removed()
  }

  /**
   * Returns the row of `key`, a new one if it has none, and selects it for the next step. `known` is its row if the caller knows
   * that, 0 for none.
   */
  rowFor(key: string, now: number, { number }: PolicyList, known = this.cursor.rows.find(key)): number {
    const { rows } = this.cursor
    const row = known || this.#add(key, now)
    rows.record(row, number, false)
    this.cursor.select(row)
    return row
  }

  /**
   * Gives a key that has none a row, selects it for the next step and returns it. The store may evict another key before. Each 64
   * rows are announced to the store as a chunk, from which it draws keys to evict.
   */
  #add(key: string, now: number): number {
    const { chunks } = this.owner
    this.owner.adding(now)
    const row = this.cursor.rows.allocate(key)
    const first = this.#chunks.length * CHUNK_ROWS
    if (row >= first) this.#chunks.push(chunks.add(this, first))
    this.owner.added(this, row)
    this.cursor.select(row)
    return row
  }
}

/** A call while it is decided. */
class OpenCall {
  /** The end of the key's block and hold, `now` without one. */
  restrictedUntil = 0
  /** The instant at which the call passes, and the number of the policy that says so. */
  at = 0
  binding = 0

  /** `row` is the key's, 0 if it has none. */
  constructor(
    readonly list: PolicyList,
    readonly key: string,
    public row: number,
    readonly now: number,
    readonly cost: number,
  ) {}
}

const view: View = { remaining: 0, resetAt: 0 }
