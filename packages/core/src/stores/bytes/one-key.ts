import type { Policy } from '../../algorithms/contract/policy.js'
import { Chunks } from '../memory/chunks.js'
import type { PolicyList } from '../memory/policy-lists.js'
import { Table } from '../memory/table.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Correction } from '../store.js'
import { instantsOf, type KeptState, type StateLayout } from './state-bytes.js'

/** The key that the state in the table lies under, whichever key it is of. */
const KEY = ''

/**
 * A table of the memory store that holds one key at a time: the state of a key is put in, decided on or corrected there, and
 * taken out. All of it happens in one step of the process.
 */
export class OneKey {
  readonly layout: StateLayout
  readonly #table: Table
  readonly #row: number
  #now = 0

  constructor(policies: readonly Policy[]) {
    const owner = { chunks: new Chunks<Table>(), now: () => this.#now, adding() {}, added() {}, removed() {} }
    this.#table = new Table(policies, owner)
    this.#row = this.#table.rowFor(KEY, 0, this.listOf(policies))
    this.layout = { cells: this.#table.cursor.cells().length, rings: this.#table.cursor.rings().length }
  }

  /** The list by which calls are decided. A key's state lasts for a full refill at the smallest limits of all lists. */
  listOf(policies: readonly Policy[], penalty?: Penalty): PolicyList {
    return { policies, penalty, listNumber: this.#table.lists.numberOf(policies) }
  }

  /** Puts a state in, as of the instant `now`; undefined for a key that has consumed nothing. */
  put(state: KeptState | undefined, now: number): void {
    const { cursor, barriers, bookings, refusals } = this.#table
    this.#now = now
    cursor.moveTo(this.#row)
    barriers.clear(this.#row)
    bookings.forget(this.#row)
    refusals.clear(this.#row)
    const rings = cursor.rings()
    for (const ring of rings) ring.keep(0)
    if (!state) {
      cursor.cells().fill(0)
      cursor.born = now
      return
    }
    cursor.cells().set(state.cells)
    for (const [i, ring] of rings.entries()) {
      const instants = state.rings[i]!
      for (let k = 0; k < instants.length; k++) ring.push(instants[k]!, 1)
    }
    if (state.last > now) bookings.open(this.#row, state.last, cursor.cells(), [])
    if (state.blockedUntil > now) barriers.block(this.#row, state.blockedUntil)
    if (state.heldUntil > now) barriers.hold(this.#row, state.heldUntil)
    if (state.forgottenAt > now) refusals.restore(this.#row, state.refusals, state.forgottenAt)
  }

  decide(list: PolicyList, ask: Ask, cost: number, maxWait: number): Answer {
    const answer = this.#table.decide(list, ask, KEY, cost, maxWait)
    if (answer.reason === undefined) return answer
    const { at } = this.#table.decide(list, 'peek', KEY, answer.remaining + 1, 0)
    return { ...answer, nextUnitAt: at }
  }

  correct(list: PolicyList, change: Correction): number {
    return this.#table.correct(list, { ...change, key: KEY })
  }

  /** The instant at which the state began. */
  get born(): number {
    return this.#table.cursor.born
  }

  /** The instant after which the state need not be kept any longer, under the smallest limits of all lists. */
  get expiresAt(): number {
    const { refusals, lists } = this.#table
    const { resetAt } = this.decide({ policies: lists.smallest, listNumber: 0 }, 'peek', 0, 0)
    return Math.max(resetAt, refusals.forgottenAt(this.#row)) + GRACE
  }

  /** Takes the state out. It is kept no shorter than until the instant `keptUntil`, which an earlier write has named. */
  take(epoch: number, version: number, keptUntil: number): KeptState {
    const { cursor, barriers, bookings, refusals } = this.#table
    const { blockedUntil, heldUntil } = barriers.lastOf(this.#row)
    return {
      epoch,
      version,
      written: this.#now,
      expiresAt: Math.max(this.expiresAt, keptUntil),
      last: bookings.lastOf(this.#row),
      blockedUntil,
      heldUntil,
      refusals: refusals.countOf(this.#row),
      forgottenAt: refusals.forgottenAt(this.#row),
      cells: cursor.cells(),
      rings: cursor.rings().map(instantsOf),
    }
  }
}

/** Expiry later than the last moment that matters, so that a late turn finds its booking: 1 s. */
const GRACE = 1_000_000

/** The table for one list of shapes, the same for all keyspaces over one store that have it. */
export function oneKeyOf(store: object, shapes: string, policies: readonly Policy[]): OneKey {
  let byShapes = TABLES.get(store)
  if (!byShapes) TABLES.set(store, (byShapes = new Map()))
  const known = byShapes.get(shapes) ?? new OneKey(policies)
  byShapes.delete(shapes)
  byShapes.set(shapes, known)
  if (byShapes.size > MOST_SHAPES) byShapes.delete(byShapes.keys().next().value!)
  return known
}

const TABLES = new WeakMap<object, Map<string, OneKey>>()
/** Beyond that, the one that was opened least recently is made anew when it is opened again. */
const MOST_SHAPES = 1000
