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
   * Makes a table for states of the shapes (algorithms and windows) of these policies. It has one row, the place of one key's state,
   * into which the state of each key is loaded in its turn. `layout` says how many numbers such a state has: its cells, its rings
   * (lists of instants), and whether a list of reservations may follow.
   */
  constructor(policies: readonly Policy[], reserves: boolean) {
    this.#table = new Table(policies, this)
    this.#row = this.#table.rowFor(KEY, 0, this.openList(policies))
    const { cursor } = this.#table
    this.layout = { cells: cursor.cells().length, rings: cursor.rings().length, reserves }
  }

  /** Makes what decides on the loaded state, and reserves there, under one list of policies, with at most `max` open reservations. */
  reserving(list: PolicyList, max: number): ReservingKeyspace {
    const open = () => ({ table: this.#table, list, written: this.#written })
    return new ReservingKeyspace(open, list.policies, max)
  }

  now(): number {
    return this.#now
  }

  /** One key needs no eviction. */
  adding(): void {}
  added(): void {}
  removed(): void {}

  /**
   * Makes the list of policies and a penalty by which the table decides calls. Notes the smallest limits of all lists: a key's
   * state is kept until it would be full again under those.
   */
  openList(policies: readonly Policy[], penalty?: Penalty): PolicyList {
    return this.#table.lists.open(policies, penalty)
  }

  /**
   * Fills the table's one row with a state, as of the instant `now` in microseconds, or with undefined as for a key that has
   * consumed nothing. A booking, a block, a hold and counted refusals are restored only if they last beyond `now`. A block is
   * restored as a penalty's, whoever began it, which makes a difference to eviction alone.
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

  /** Decides a call on the loaded state. A booking waits at most `maxWait` microseconds. A denial gets its `nextUnitAt`. */
  decide(by: PolicyList | ReservingKeyspace, ask: Ask, cost: number, maxWait: number): Answer {
    return this.withNextUnit(this.#decide(by, ask, cost, maxWait), by)
  }

  /**
   * Adds to a denial the instant at which one unit more than `remaining` would pass (`nextUnitAt`), which a cache of denials needs:
   * before it, every larger cost is denied too. Returns any other answer as it is.
   */
  withNextUnit(answer: Answer, by: PolicyList | ReservingKeyspace): Answer {
    if (answer.reason === undefined) return answer
    const { at } = this.#decide(by, 'peek', answer.remaining + 1, 0)
    return { nextUnitAt: at, ...answer }
  }

  #decide(by: PolicyList | ReservingKeyspace, ask: Ask, cost: number, maxWait: number): Answer {
    if (by instanceof ReservingKeyspace) return by.decide(ask, KEY, cost, maxWait)
    return this.#table.decide(by, ask, KEY, cost, maxWait)
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
   * The instant, in microseconds, after which the loaded state need not be kept: a second after the key is full again, its refusals
   * are forgotten and its reservations have ended, whichever is last.
   */
  get expiresAt(): number {
    const { refusals, reserved } = this.#table
    const knownUntil = reserved.get(this.#row)?.knownUntil ?? 0
    return Math.max(this.#fullAt, refusals.forgottenAt(this.#row), knownUntil) + GRACE
  }

  /** The instant at which the key is full again under the smallest limits of all lists, as a peek of no units says. */
  get #fullAt(): number {
    const smallest = { policies: this.#table.lists.smallest, number: 0, penalty: undefined }
    return this.#decide(smallest, 'peek', 0, 0).resetAt
  }

  /**
   * Returns the loaded state, to be kept as bytes: the cells and rings of the algorithms, its block, hold, booking, counted refusals
   * and reservations. Two random numbers are kept with it, by which a booking sees later whether it still stands: `epoch`, drawn
   * when the state began, and `version`, drawn for the latest charge. The state expires no earlier than at the instant `keptUntil`,
   * which an earlier write has named.
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
