import type { Policy } from '../../algorithms/contract/policy.js'
import { Chunks } from '../memory/chunks.js'
import type { PolicyList } from '../memory/policy-lists.js'
import { Table, type TableOwner } from '../memory/table.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Booking, Correction, Keyspace, MaybePromise, Report } from '../store.js'
import { bytesOf, instantsOf, isSound, type KeptState, type StateLayout, stateOf } from './state-bytes.js'

/** The outcome of an operation on the state of a key. */
export interface StateChange<T> {
  /** The result of the operation, which `Update` hands on. */
  readonly result: T
  /** The state from now on: the very bytes that were given if nothing was written, undefined to delete the key. */
  readonly state: Uint8Array | undefined
  /** The instant after which the state may be dropped, in microseconds on the store's clock. */
  readonly expiresAt: number
}

/**
 * Changes the state of one key in one atomic step: reads the bytes that are kept under `id`, calls `change` with them and the
 * instant, and keeps what it returns. `id` is made of the limiter's name, the shapes of the policies, and the key.
 * - No other update of this id may run in between: lock the id, or compare before writing and begin again; `change` may be
 *   called repeatedly.
 * - `now` is in whole microseconds on the clock that all processes with this state share. If it stands behind the latest
 *   write by less than the longest window, the time of that write counts.
 * - If it fails, it rejects with StoreError. A store that sets `local` returns at once and never fails.
 */
export type Update = <T>(
  id: string,
  change: (state: Uint8Array | undefined, now: number) => StateChange<T>,
) => MaybePromise<T>

/**
 * A keyspace over state that a store keeps as bytes, for stores that have no code of their own to decide: every operation is
 * one update, which the process decides as `memoryStore` does. The state of a key takes about 100 bytes; 8 more for each slot
 * or bucket, and for each entry of a sliding log.
 * @example
 * import { keyspaceOver, type Store, type Update } from '@sluice/core/store'
 * const states = new Map<string, Uint8Array>()
 * const now = () => Math.floor(performance.now() * 1000)
 * const update: Update = (id, change) => {
 *   const { result, state } = change(states.get(id), now())
 *   if (state) states.set(id, state)
 *   else states.delete(id)
 *   return result
 * }
 * const store: Store = {
 *   local: true,
 *   keyspace: (name, policies, report, penalty) => keyspaceOver(update, name, policies, report, penalty),
 *   now,
 *   close() {},
 * }
 */
export function keyspaceOver(
  update: Update,
  name: string,
  policies: readonly Policy[],
  report: Report,
  penalty?: Penalty,
): Keyspace {
  return new KeyspaceOver(update, name, policies, report, penalty)
}

/** A booking that knows the state which it was made in, and what was there before. */
interface KeptBooking extends Booking {
  readonly epoch: number
  readonly version: number
  readonly before: KeptState
}

class KeyspaceOver implements Keyspace {
  readonly #idPrefix: string
  readonly #longestWindow: number
  readonly #table: ScratchTable
  readonly #list: PolicyList
  readonly #cancelled = new WeakSet<Booking>()

  constructor(
    readonly update: Update,
    name: string,
    readonly policies: readonly Policy[],
    readonly report: Report,
    readonly penalty: Penalty | undefined,
  ) {
    // The end of a JSON array is found without its beginning, so no two lists and keys have one id.
    this.#idPrefix = JSON.stringify([name, ...policies.map(({ shape }) => shape)])
    this.#longestWindow = Math.max(...policies.map(({ window }) => window))
    this.#table = scratchTableOf(update, this.#idPrefix, policies)
    this.#list = this.#table.listOf(policies, penalty)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number): MaybePromise<Answer> {
    return this.#change<Answer>(key, (before, now, time) => {
      const { booking, ...decided } = this.#table.decide(this.#list, ask, cost, maxWait)
      // A caller who waits also waits until a clock that was set back has caught up.
      const answer = decided.at > now ? { ...decided, now: time } : decided
      const isAsked = cost > 0 && ask !== 'peek'
      const isCharged = isAsked && ask !== 'try' && answer.reason === undefined
      const isRefused = isAsked && ask !== 'reserve' && answer.reason !== undefined
      const isCounted = isRefused && answer.reason === 'limit' && this.penalty !== undefined
      // A limit smaller than those of the writes before refuses the key for longer than its state is kept.
      const isOutlived = isRefused && before !== undefined && this.#table.expiresAt > before.expiresAt
      if (!isCharged && !isCounted && !isOutlived) return { result: { ...answer, booking } }
      // A block that ends with a full allowance has begun: the bookings of before are lost.
      const isAnew = isCounted && this.penalty.then === 'fresh' && this.#table.isBlocked
      const epoch = isAnew || !before ? random() : before.epoch
      const version = isCharged || isAnew || !before ? random() : before.version
      const own = booking && before && { ...booking, key, epoch, version, before }
      return { result: { ...answer, booking: own }, epoch, version }
    })
  }

  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    const { key, epoch } = booking as KeptBooking
    return this.#change<'stands' | 'lost' | 'held'>(key, (state, now) => {
      if (state?.epoch !== epoch) return { result: 'lost' }
      return { result: Math.max(state.blockedUntil, state.heldUntil) > now ? 'held' : 'stands' }
    })
  }

  cancel(booking: Booking): MaybePromise<boolean> {
    if (this.#cancelled.has(booking)) return false
    this.#cancelled.add(booking)
    const { key, cost, epoch, version, before } = booking as KeptBooking
    return this.#change<boolean>(key, (state, now) => {
      if (state?.epoch !== epoch) return { result: false }
      if (state.version !== version) {
        this.#table.correct(this.#list, { kind: 'release', key, charge: booking, units: cost })
        return { result: false, epoch, version: random() }
      }
      // The block, the hold and the refusals are none of the booking's.
      const { blockedUntil, heldUntil, refusals, forgottenAt } = state
      this.#table.load({ ...before, blockedUntil, heldUntil, refusals, forgottenAt }, now)
      return { result: true, epoch, version: before.version }
    })
  }

  correct(change: Correction): MaybePromise<number> {
    return this.#change(change.key, (state) => {
      const { kind } = change
      if (kind === 'reset') return { result: 0, isReset: true }
      const isEnd = kind === 'block' && change.duration === 0
      const isOthers = kind === 'release' && change.charge.decidedAt < this.#table.born
      if (isOthers || (!state && (isEnd || kind === 'refund' || kind === 'release'))) return { result: 0 }
      const result = this.#table.correct(this.#list, change)
      const isAboutUnits = kind !== 'block' && kind !== 'hold'
      const version = isAboutUnits || !state ? random() : state.version
      return { result, epoch: state?.epoch ?? random(), version }
    })
  }

  /** One update: loads the state of `key` into the table, operates on it there, and saves it if it was written. */
  #change<T>(
    key: string,
    operate: (state: KeptState | undefined, now: number, time: number) => Operated<T>,
  ): MaybePromise<T> {
    return this.update<T>(this.#idPrefix + key, (bytes, clock) => {
      const time = Math.floor(clock) // an instant that is not whole would make state that is not sound
      const state = bytes && this.#read(bytes, time)
      const now = Math.max(time, state?.written ?? 0)
      this.#table.load(state, now)
      const { result, isReset = false, epoch, version } = operate(state, now, time)
      if (isReset) return { result, state: undefined, expiresAt: now }
      if (epoch === undefined || version === undefined) return { result, state: bytes, expiresAt: Infinity }
      if (bytes && !state) this.report({ event: 'healed', key })
      const after = this.#table.save(epoch, version, state?.expiresAt ?? 0)
      return { result, state: bytesOf(after), expiresAt: after.expiresAt }
    })
  }

  /** Undefined, too, for state of a clock that was set back: no caller is locked out for longer than a window. */
  #read(bytes: Uint8Array, time: number): KeptState | undefined {
    const state = stateOf(bytes, this.#table.layout)
    const isCurrent = state && state.written - time < this.#longestWindow
    return isCurrent && isSound(state, this.policies) ? state : undefined
  }
}

/** An operation that was carried out: with an epoch and a version it has written. */
interface Operated<T> {
  readonly result: T
  readonly isReset?: boolean
  readonly epoch?: number
  readonly version?: number
}

function random(): number {
  return Math.floor(Math.random() * 2 ** 52)
}

/** Every state in the table lies under this key. */
const KEY = ''

/**
 * A table of the memory store that holds one key at a time: the state of a key is loaded, decided on or corrected there, and
 * saved. All of it happens in one step of the process.
 */
class ScratchTable implements TableOwner {
  readonly chunks = new Chunks<Table>()
  readonly behind = 0
  readonly layout: StateLayout
  readonly #table: Table
  readonly #row: number
  #now = 0

  constructor(policies: readonly Policy[]) {
    this.#table = new Table(policies, this)
    this.#row = this.#table.rowFor(KEY, 0, this.listOf(policies))
    this.layout = { cells: this.#table.cursor.cells().length, rings: this.#table.cursor.rings().length }
  }

  now(): number {
    return this.#now
  }

  /** One key needs no eviction. */
  adding(): void {}
  added(): void {}
  removed(): void {}

  /** The list by which calls are decided. A key's state lasts for a full refill at the smallest limits of all lists. */
  listOf(policies: readonly Policy[], penalty?: Penalty): PolicyList {
    return this.#table.lists.open(policies, penalty)
  }

  /** Loads a state, as of the instant `now`; undefined for a key that has consumed nothing. */
  load(state: KeptState | undefined, now: number): void {
    const { cursor, restrictions, bookings, refusals } = this.#table
    this.#now = now
    cursor.select(this.#row)
    restrictions.clear(this.#row)
    bookings.forget(this.#row)
    refusals.clear(this.#row)
    cursor.clear(now)
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

  get isBlocked(): boolean {
    return this.#table.restrictions.lastOf(this.#row).blockedUntil > this.#now
  }

  /** The instant at which the state began. */
  get born(): number {
    return this.#table.cursor.born
  }

  /** The instant after which the state need not be kept any longer, under the smallest limits of all lists. */
  get expiresAt(): number {
    const { refusals, lists } = this.#table
    const { resetAt } = this.decide({ policies: lists.smallest, number: 0, penalty: undefined }, 'peek', 0, 0)
    return Math.max(resetAt, refusals.forgottenAt(this.#row)) + GRACE
  }

  /** Returns the state to be kept, no shorter than until the instant `keptUntil`, which an earlier write has named. */
  save(epoch: number, version: number, keptUntil: number): KeptState {
    const { cursor, restrictions, bookings, refusals } = this.#table
    const { blockedUntil, heldUntil } = restrictions.lastOf(this.#row)
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
function scratchTableOf(store: object, shapes: string, policies: readonly Policy[]): ScratchTable {
  let byShapes = TABLES.get(store)
  if (!byShapes) TABLES.set(store, (byShapes = new Map()))
  const known = byShapes.get(shapes) ?? new ScratchTable(policies)
  byShapes.delete(shapes)
  byShapes.set(shapes, known)
  if (byShapes.size > MOST_SHAPES) byShapes.delete(byShapes.keys().next().value!)
  return known
}

const TABLES = new WeakMap<object, Map<string, ScratchTable>>()
/** Beyond that, the one that was opened least recently is made anew when it is opened again. */
const MOST_SHAPES = 1000
