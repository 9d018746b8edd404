import type { Policy } from '../../algorithms/contract/policy.js'
import { Chunks, type TableOwner } from '../memory/chunks.js'
import { KeyReservations } from '../memory/key-reservations.js'
import type { PolicyList } from '../memory/policy-lists.js'
import { ReservingKeyspace } from '../memory/reserving-keyspace.js'
import { Table } from '../memory/table.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Correction } from '../store.js'
import { instantsOf, type KeptState, type StateLayout } from './state-bytes.js'

/**
 * A table of the memory store that holds one key at a time: the state of a key is loaded, decided on or corrected there, and
 * saved. All of it happens in one step of the process.
 */
export class ScratchTable implements TableOwner<Table> {
  readonly chunks = new Chunks<Table>()
  readonly behind = 0
  readonly layout: StateLayout
  readonly #table: Table
  readonly #row: number
  #now = 0
  /** The latest write to the loaded state: later than now if the clock was set back and a calendar has kept the state. */
  #written = 0

  /**
   * Makes a table with one row, the place of one key's state, for states of these shapes. Each key's state is loaded into that
   * row in its turn.
   */
  constructor(policies: readonly Policy[], reserves: boolean) {
    this.#table = new Table(policies, this)
    this.#row = this.#table.rowFor(KEY, 0, this.listOf(policies))
    const { cursor } = this.#table
    this.layout = { cells: cursor.cells().length, rings: cursor.rings().length, reserves }
  }

  /** What decides on the loaded state, and reserves at most `max` times, under one list of policies. */
  reserving(list: PolicyList, max: number): ReservingKeyspace {
    const open = () => ({ table: this.#table, list, written: this.#written })
    return new ReservingKeyspace(open, list.policies, undefined, max)
  }

  now(): number {
    return this.#now
  }

  /** One key needs no eviction. */
  adding(): void {}
  added(): void {}
  removed(): void {}

  /**
   * Returns a list of policies (limits and a penalty) as the table decides by it. The smallest limits of all lists are noted: a
   * key's state is kept until it would be full again under those.
   */
  listOf(policies: readonly Policy[], penalty?: Penalty): PolicyList {
    return this.#table.lists.open(policies, penalty)
  }

  /**
   * Fills the table's one row with a state, as of the instant `now` in microseconds; with undefined, it is as for a key that has
   * consumed nothing. Bookings, blocks, holds and counted refusals are restored only if they end after `now`.
   */
  load(state: KeptState | undefined, now: number): void {
    const { cursor, restrictions, bookings, refusals, reserved } = this.#table
    this.#now = now
    this.#written = Math.max(now, state?.written ?? 0)
    cursor.select(this.#row)
    restrictions.clear(this.#row)
    bookings.forget(this.#row)
    refusals.clear(this.#row)
    reserved.delete(this.#row)
    cursor.clear()
    if (!state) return
    cursor.cells().set(state.cells)
    for (const [i, ring] of cursor.rings().entries()) {
      const instants = state.rings[i]!
      for (let k = 0; k < instants.length; k++) ring.push(instants[k]!, 1)
    }
    if (state.last > now) bookings.open(this.#row, state.last, cursor.cells(), [])
    if (state.blockedUntil > now) restrictions.block(this.#row, now, state.blockedUntil, true)
    if (state.heldUntil > now) restrictions.hold(this.#row, state.heldUntil)
    if (state.forgottenAt > now) refusals.restore(this.#row, state.refusals, state.forgottenAt)
    if (state.reserved) reserved.set(this.#row, KeyReservations.of(state.reserved))
  }

  /**
   * Decides a call on the loaded state. A booking waits at most `maxWait` microseconds. A denial also gets the instant at which
   * one unit more than `remaining` would pass, which a cache of denials needs: before it, every larger cost is denied too.
   */
  decide(by: PolicyList | ReservingKeyspace, ask: Ask, cost: number, maxWait: number): Answer {
    if (by instanceof ReservingKeyspace) return this.withNextUnit(by.decide(ask, KEY, cost, maxWait), by)
    return this.withNextUnit(this.#table.decide(by, ask, KEY, cost, maxWait), by)
  }

  /** The answer, and if it is a denial `nextUnitAt`. */
  withNextUnit(answer: Answer, by: PolicyList | ReservingKeyspace): Answer {
    if (answer.reason === undefined) return answer
    const cost = answer.remaining + 1
    const peek =
      by instanceof ReservingKeyspace
        ? by.decide('peek', KEY, cost, 0)
        : this.#table.decide(by, 'peek', KEY, cost, 0)
    return { ...answer, nextUnitAt: peek.at }
  }

  correct(list: PolicyList, change: Correction): number {
    return this.#table.correct(list, { ...change, key: KEY })
  }

  get isBlocked(): boolean {
    return this.#table.restrictions.lastOf(this.#row).blockedUntil > this.#now
  }

  /** The instant at which the state began. */
  get born(): number {
    return this.#table.cursor.born
  }

  /**
   * The instant, in microseconds, after which the loaded state need not be kept any longer: when the key is full again under the
   * smallest limits of all lists, or its refusals are forgotten, whichever is later, and a second more.
   */
  get expiresAt(): number {
    const { refusals, lists } = this.#table
    const { resetAt } = this.decide({ policies: lists.smallest, number: 0, penalty: undefined }, 'peek', 0, 0)
    const knownUntil = this.#table.reserved.get(this.#row)?.knownUntil ?? 0
    return Math.max(resetAt, refusals.forgottenAt(this.#row), knownUntil) + GRACE
  }

  /**
   * Returns the state of the row, to be kept as bytes, under this epoch (random, of state that began anew) and version (random,
   * of the latest charge). It is kept no shorter than until the instant `keptUntil`, which an earlier write has promised.
   */
  save(epoch: number, version: number, keptUntil: number): KeptState {
    const { cursor, restrictions, bookings, refusals, reserved } = this.#table
    const own = reserved.get(this.#row)
    const { blockedUntil, heldUntil } = restrictions.lastOf(this.#row)
    return {
      epoch,
      version,
      written: this.#written,
      expiresAt: Math.max(this.expiresAt, keptUntil),
      last: bookings.lastOf(this.#row),
      blockedUntil,
      heldUntil,
      refusals: refusals.countOf(this.#row),
      forgottenAt: refusals.forgottenAt(this.#row),
      cells: cursor.cells(),
      rings: cursor.rings().map(instantsOf),
      ...(own && { reserved: own.numbers }),
    }
  }
}

/** Expiry later than the last moment that matters, so that a late turn finds its booking: 1 s. */
const GRACE = 1_000_000

/** Every state in the table lies under this key. */
export const KEY = ''
