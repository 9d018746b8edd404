import type { Policy } from '../../algorithms/contract/policy.js'
import type { Answer, Ask, Booking, Correction, Reason, Report } from '../store.js'
import { Barriers, Refusals } from './barriers.js'
import { Bookings, type MemoryBooking } from './bookings.js'
import { CHUNK_ROWS, type Chunk, type Chunks } from './chunks.js'
import { cancel, correct, type CorrectedTable } from './corrections.js'
import { Cursor } from './cursor.js'
import { answerOf } from './memory-answer.js'
import { type PlainCalls, plainCallsOf } from './plain-calls.js'
import { type PolicyList, PolicyLists } from './policy-lists.js'

/** What a table needs of the store it belongs to. */
export interface TableOwner {
  /** The rows of all its tables. */
  readonly chunks: Chunks<Table>
  now(): number
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
export class Table implements CorrectedTable {
  readonly cursor: Cursor
  readonly barriers = new Barriers()
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
  readonly #owner: TableOwner
  readonly #plain: PlainCalls | undefined

  constructor(policies: readonly Policy[], owner: TableOwner) {
    this.cursor = new Cursor(policies)
    this.lists = new PolicyLists(policies)
    this.#owner = owner
    this.#plain = plainCallsOf(policies, this)
  }

  /**
   * Decides one call: a plain one in `PlainCalls`, any other in `#decideAny`. A key that has no row is decided on row 0,
   * which is blank.
   */
  decide(list: PolicyList, ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const now = this.#owner.now()
    const row = this.cursor.rows.find(key)
    this.cursor.moveTo(row)
    if (ask === 'consume' && cost > 0 && row !== 0 && !this.bookings.has(row)) {
      const answer = this.#plain?.decide(list, row, now, cost)
      if (answer) return answer
    }
    return this.#decideAny(list, ask, key, row, now, cost, maxWait)
  }

  /** Decides any call, under any list of policies. `found` is the key's row, 0 if it has none. */
  #decideAny(
    list: PolicyList,
    ask: Ask,
    key: string,
    found: number,
    now: number,
    cost: number,
    maxWait: number,
  ): Answer {
    const { policies, penalty } = list
    const { cursor, barriers } = this
    const barrier = barriers.of(found, now)
    let row = found
    // No call passes before the end of a block or hold, nor a call with a cost before the last booking.
    let barredUntil = barrier ? Math.max(barrier.blockedUntil, barrier.heldUntil) : now
    const from = cost === 0 ? barredUntil : Math.max(barredUntil, this.bookings.lastOf(row))

    // The call passes at the latest of the instants at which the policies admit it.
    let at = from
    let binding = 0
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      const earliest = cost === 0 ? from : policy.algorithm.earliest(cursor.states[i]!, policy, from, cost)
      cursor.instants[i] = earliest
      if (earliest > at) {
        at = earliest
        binding = i
      }
    }

    let reason: Reason | undefined
    if (at === Infinity) reason = 'cost'
    else if (barrier && barrier.blockedUntil > now) reason = 'blocked'
    else if (at > now + maxWait) reason = barrier && barrier.heldUntil > now ? 'held' : 'limit'

    let booking: MemoryBooking | undefined
    let isRefusalCounted = false
    if (reason === undefined && cost > 0 && ask !== 'peek') {
      if (row === 0) row = this.#add(key, now)
      cursor.rows.record(row, list.listNumber, false)
      if (at > now) booking = this.#booking(row, key, at, cost, now)
      else this.bookings.touch(row)
      cursor.admit(policies, at, cost)
      if (booking) for (const ring of cursor.rings()) ring.seal()
    } else if (reason === 'limit' && row !== 0 && ask !== 'peek') {
      cursor.rows.record(row, list.listNumber, true)
      if (penalty) {
        barredUntil = Math.max(
          barredUntil,
          this.refusals.penalize(row, penalty, now, barriers, cursor.instants),
        )
        at = Math.max(at, barredUntil) // to which `penalize` has moved the instants of the policies that refuse
        binding = cursor.instants.indexOf(at)
        isRefusalCounted = true
      }
    }
    const opensAt = Math.max(barredUntil, this.bookings.lastOf(row))
    const answer = answerOf(cursor, policies, now, at, reason, binding, barredUntil, opensAt, booking)
    if (isRefusalCounted) this.refusals.keep(row, answer.resetAt + penalty!.forgetAfter)
    return answer
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    const now = this.#owner.now()
    if ((booking as MemoryBooking).undo.life.lost) return 'lost'
    return this.barriers.of(this.cursor.rows.find(booking.key), now) ? 'held' : 'stands'
  }

  cancel(policies: readonly Policy[], booking: Booking): boolean {
    return cancel(this, policies, booking, this.#owner.now())
  }

  correct(list: PolicyList, change: Correction): number {
    return correct(this, list, change, this.#owner.now())
  }

  /** Discards state that still matters. Its bookings are lost, and calls that wait for them book again. */
  lose(row: number): void {
    this.bookings.lose(row)
    this.free(row)
  }

  /** Discards the state of every key. */
  loseAll(): void {
    const { rows } = this.cursor
    for (let row = rows.top; rows.size > 0; row--) if (rows.keyAt(row) !== undefined) this.lose(row)
  }

  /** Frees the row of a key whose allowance is full again. Any other key goes through `lose`. */
  free(row: number): void {
    this.bookings.forget(row)
    this.barriers.clear(row)
    this.refusals.clear(row)
    this.cursor.rows.free(row)
    if (this.cursor.rows.size === 0)
      for (const chunk of this.#chunks.splice(0)) this.#owner.chunks.remove(chunk)
    this.#owner.removed()
  }

  /** Records a booking for `at`, with what undoes it. To be called before the state is written. */
  #booking(row: number, key: string, at: number, cost: number, decidedAt: number): MemoryBooking {
    const undo = this.bookings.open(row, at, this.cursor.cells(), this.cursor.rings())
    return { key, at, cost, decidedAt, undo, isCancelled: false }
  }

  /** The row of `key`, allocated if it has none, with the cursor on it. */
  rowFor(key: string, now: number, { listNumber }: PolicyList): number {
    const { rows } = this.cursor
    const row = rows.find(key) || this.#add(key, now)
    rows.record(row, listNumber, false)
    this.cursor.moveTo(row)
    return row
  }

  /** Allocates a row for a key that has none, and moves the cursor to it. */
  #add(key: string, now: number): number {
    const { chunks } = this.#owner
    this.#owner.adding(now)
    const row = this.cursor.rows.allocate(key)
    const first = this.#chunks.length * CHUNK_ROWS
    if (row >= first) this.#chunks.push(chunks.add(this, first))
    this.#owner.added(this, row)
    this.cursor.moveTo(row)
    this.cursor.born = now
    return row
  }
}
