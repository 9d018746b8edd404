import type { Policy } from '../../algorithms/contract/policy.js'
import { type Clock, stoppable, systemClock } from '../../values/clock.js'
import { closedClock, Closing } from '../../values/closing.js'
import { CONTRACT, CONTRACT_NUMBER } from '../../values/contract.js'
import { clock, type DeclarationOf, readOptions, whole } from '../../values/options.js'
import { heldWeakly } from '../../values/weak-values.js'
import { RESERVING, type ReservationSettings } from '../reservations.js'
import { type OpenTable, ReservingKeyspace } from './reserving-keyspace.js'
import type { Penalty } from '../penalty.js'
import { maxShapes, SHAPES } from '../shapes.js'
import type { Answer, Ask, Booking, Correction, Keyspace } from '../store.js'
import type { Board, Records, Report, Store } from '../store.js'
import { memoryBoard, type Note } from './boards.js'
import { CHUNK_ROWS, Chunks, type TableOwner } from './chunks.js'
import { Eviction, Overflow } from './eviction.js'
import type { PolicyList } from './policy-lists.js'
import { memoryRecords } from './records.js'
import { Table } from './table.js'

export interface MemoryStoreOptions {
  /**
   * Most keys held at once, over all limiters of the store, at most 8,388,608.
   * @default 1_000_000
   */
  readonly maxKeys?: number
  /**
   * Most lists of shapes held at once, over all limiters of the store. Beyond that, the least recently opened one without
   * keys is dropped.
   * @default 1000
   */
  readonly maxShapes?: number
  /** Returns microseconds; for tests and simulations. Default: wall time read once plus the monotonic clock. */
  readonly clock?: Clock
}

/**
 * A store in this process: it answers at once, needs no server, and its state ends with the process.
 *
 * Memory is bounded by `maxKeys`. When that is reached, keys whose allowance is full again are freed first. Then the key that
 * has spent the smallest part of its allowance is evicted, of a sample over all limiters. Exhausted keys follow, those with the
 * fewest denials first, then keys that a penalty has blocked, and last those that `limiter.block` has. 'evicted' is emitted for
 * each evicted key.
 * @throws {PolicyError} INVALID_OPTION for a bad `maxKeys`, `maxShapes` or `clock`.
 * @example
 * const limiter = createLimiter({ policies, store: memoryStore({ maxKeys: 100_000 }) })
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return new Memory(options)
}

export interface MemoryStore extends Store {
  /** Keys held now. */
  readonly size: number
  /** Forgets the state of every key of every limiter, with its block and its hold. Permits of semaphores stay. */
  resetAll(): void
}

/** Options of `memoryStore`. */
export const MEMORY_STORE = {
  maxKeys: whole(1, 2 ** 23, 1_000_000),
  maxShapes,
  clock,
} satisfies DeclarationOf<MemoryStoreOptions>

/** Microseconds for which a key that is full again stays while `#isRoomy`: finding it costs a third of freeing and adding it. */
const KEPT_US = 5_000_000
const SLICE_ROWS = 4096
/** Rows between two looks at the time. */
const STEP_ROWS = 16
/** Milliseconds of a slice of sweeping, short enough not to delay the event loop noticeably. */
const SLICE_MS = 0.9

class Memory implements MemoryStore, TableOwner<Table> {
  get [CONTRACT](): number {
    return CONTRACT_NUMBER
  }
  readonly local = true
  readonly forgets = true
  readonly maxShapes: number
  readonly chunks = new Chunks<Table>()
  readonly #eviction = new Eviction(this.chunks.list)
  readonly #overflow: Overflow
  readonly #maxKeys: number
  #clock: Clock
  /** Tables by limiter and shapes, the least recently opened first. */
  readonly #tables = new Map<string, Table>()
  readonly #boards = new Map<string, Map<string, Note>>()
  readonly #records = memoryRecords(() => this.now())
  readonly #purging = this.#purgeBookings()
  #stopSweeping: (() => void) | undefined
  #size = 0
  // Not `#`, as a private field is first undefined, and then each number that is written to it takes memory of its own.
  private latest = 0
  private lastRead = 0
  readonly #closing = new Closing()

  /**
   * Makes a store that keeps up to `maxKeys` keys in this process, and up to `maxShapes` tables of keys. `#overflow` decides when to
   * warn that keys are forgotten because there are too many. No timer is started: the first key that is added does.
   * @throws {PolicyError} INVALID_OPTION for options that are not valid.
   */
  constructor(options: MemoryStoreOptions) {
    const { maxKeys, maxShapes, clock } = readOptions(MEMORY_STORE, options, { what: 'memoryStore' })
    this.maxShapes = maxShapes
    this.#maxKeys = maxKeys
    this.#overflow = new Overflow(maxKeys)
    this.#clock = clock ? stoppable(clock) : systemClock()
  }

  get size(): number {
    return this.#size
  }

  /**
   * Opens the state of the limiter `name` under one list of policies. Lists of equal shapes (algorithms and windows) share one
   * table of keys. The keyspace finds or makes it by `open`, now and whenever the store has dropped it. `report` gets notices, such
   * as of evictions.
   */
  keyspace(
    name: string,
    policies: readonly Policy[],
    report: Report,
    penalty?: Penalty,
    reservations?: ReservationSettings,
  ): Keyspace {
    const shapes = policies.map((policy) => policy.shape)
    const id = [name, ...shapes, ...(reservations ? [RESERVING] : [])].join('\n')
    /** Makes the table the last of the map, as the latest opened. Beyond `maxShapes`, drops ones without keys and warns. */
    const open = (): Table => {
      const table = this.#tables.get(id) ?? new Table(policies, this)
      this.#tables.delete(id)
      this.#tables.set(id, table)
      table.reports.add(report)
      if (this.#dropTables(table)) report({ event: 'warning', ...SHAPES })
      return table
    }
    const keyspace = new MemoryKeyspace(open, policies, penalty)
    if (!reservations) return keyspace
    const opened = (): OpenTable => keyspace.opened()
    return new ReservingKeyspace(opened, policies, reservations.max)
  }

  /**
   * The store's time, in whole microseconds. It never runs back: if the clock does, the latest time is returned until the clock
   * has caught up, and `behind` is the difference. `lastRead` is what the clock said.
   */
  now(): number {
    const now = Math.floor(this.#clock())
    this.lastRead = now
    if (now > this.latest) this.latest = now // also passes over NaN, which is no time
    return this.latest
  }

  /** How far the clock stands behind `now`, in microseconds: above 0 after it was set back. */
  get behind(): number {
    return this.latest - this.lastRead
  }

  /** The board of this name, made if there is none: texts that authors leave for each other, shared by all users of the store. */
  board(name: string): Board {
    const notes = this.#boards.get(name) ?? new Map<string, Note>()
    this.#boards.set(name, notes)
    return memoryBoard(notes, () => this.now())
  }

  /** The records of operators about single keys, over all limiters of the store. */
  records(): Records {
    return this.#records
  }

  /**
   * Makes room for one more key and counts it: frees a few keys whose allowance is full again, unless little of the store is in
   * use, and evicts a key if the store is full. The first key starts the background sweeper. The store's constructor does not,
   * as some platforms allow no timer while modules are loaded.
   */
  adding(now: number): void {
    this.#stopSweeping ??= sweepInBackground(this)
    if (!this.#isRoomy) this.#eviction.sweep(2, now)
    if (this.#size >= this.#maxKeys) this.#evict(now)
    this.#size++
  }

  /** Notes the key that a table has added last, in this row: a search for a key to evict begins near it. */
  added(table: Table, row: number): void {
    this.#eviction.added(table, row)
  }

  removed(): void {
    this.#size--
  }

  /** Whether keys that are full again are kept for a while, and the background alone frees them. */
  get #isRoomy(): boolean {
    return 4 * this.#size < this.#maxKeys
  }

  /**
   * Frees keys whose allowance is full again, for at most 1 ms, and returns whether more are likely: it freed more than a quarter of
   * the rows that it checked. Up to a third of the time goes to forgetting bookings that have passed; `#purging` yields true after a
   * round over them. While little of the store is in use, keys that became full less than 5 s ago stay.
   */
  sweep(): boolean {
    const now = this.now()
    const start = performance.now()
    while (performance.now() < start + SLICE_MS / 3 && !this.#purging.next().value);
    const end = start + SLICE_MS
    const rows = Math.min(SLICE_ROWS, this.chunks.list.length * CHUNK_ROWS)
    let [seen, freed] = [0, 0]
    const since = this.#isRoomy ? now - KEPT_US : now
    for (; seen < rows && performance.now() < end; seen += STEP_ROWS)
      freed += this.#eviction.sweep(STEP_ROWS, since)
    return freed > seen / 4
  }

  resetAll(): void {
    for (const table of this.#tables.values()) table.discardAll()
  }

  get closed(): AbortSignal {
    return this.#closing.signal
  }

  /** Closes the store and gives its state up. The signal `closed` rejects calls that wait. Later calls throw CLOSED. */
  close(): void {
    this.#clock = closedClock // it throws, so that calls need no check of their own
    this.#closing.close()
    this.#stopSweeping?.()
    this.#tables.clear()
  }

  /**
   * Drops tables without keys, which hold no state, the least recently opened first, until `maxShapes` are left. `opened`, the
   * latest, stays. Checks at most LOOKS (16), so that a call takes no longer when there are many. Returns whether it dropped any.
   */
  #dropTables(opened: Table): boolean {
    const { size } = this.#tables
    let looks = LOOKS
    for (const [id, table] of this.#tables) {
      if (this.#tables.size <= this.maxShapes || table === opened || looks-- === 0) break
      this.#tables.delete(id)
      if (table.cursor.rows.size > 0)
        this.#tables.set(id, table) // behind the others, to be looked at last
      else table.isDropped = true
    }
    return this.#tables.size < size
  }

  /** Forgets passed bookings, without end: checks one key a step, so the caller decides how long. Yields true after a round. */
  *#purgeBookings(): Generator<true | undefined> {
    for (;;) {
      for (const { bookings } of this.#tables.values()) yield* bookings.purge(() => this.latest)
      yield true
    }
  }

  /**
   * Frees one key of the full store. If something is lost with it, as its allowance was not full again, all limiters that share its
   * table get the notice 'evicted', and from time to time a warning that `maxKeys` is too small.
   */
  #evict(now: number): void {
    const lost = this.#eviction.evict(now, (of) => this.#areAllRestricted(of))
    if (!lost) return
    const warning = this.#overflow.note(lost, now)
    for (const report of lost.table.reports) {
      report({ event: 'evicted', key: lost.key })
      if (warning) report(warning)
    }
  }

  /**
   * Whether all keys of the store are of a sort that matters, so that the search for a key to evict would find no lesser one: with
   * 'size', all are blocked or held, or were; with 'bans', operators have blocked all. Each table counts both.
   */
  #areAllRestricted(of: 'size' | 'bans'): boolean {
    let count = 0
    for (const { restrictions } of this.#tables.values()) count += restrictions[of]
    return count >= this.#size
  }
}

/** A table under one list of policies. Lists of equal shapes share the table. */
class MemoryKeyspace implements Keyspace {
  #table: Table
  #list: PolicyList

  /**
   * The state of a limiter under `policies`, in the table that `open` returns; `open` is called again if the store has dropped
   * that table, as it held no keys. `#list` is the list of policies as the table knows it: with the penalty, which blocks keys after
   * too many denials, and with a number, by which a key's row notes the list that the key was last decided under.
   */
  constructor(
    private readonly open: () => Table,
    readonly policies: readonly Policy[],
    readonly penalty: Penalty | undefined,
  ) {
    this.#table = open()
    this.#list = this.#table.lists.open(policies, penalty)
  }

  /** Decides a call on a key. If the store has dropped the table, which held no keys then, a table is opened first. */
  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const table = this.#table.isDropped ? this.#openTable() : this.#table
    return table.decide(this.#list, ask, key, cost, maxWait)
  }

  fits(key: string, cost: number): boolean {
    return this.#openTable().fits(this.#list, key, cost)
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    return this.#openTable().confirm(booking)
  }

  cancel(booking: Booking): boolean {
    return this.#openTable().cancel(this.policies, booking)
  }

  correct(change: Correction): number {
    return this.#openTable().correct(this.#list, change)
  }

  /** The table, and the list of policies under which the keyspace decides there. */
  opened(): OpenTable {
    return { table: this.#openTable(), list: this.#list }
  }

  /** Returns the keyspace's table. If the store has dropped it, as it held no keys, opens it anew, with a number for the list. */
  #openTable(): Table {
    if (this.#table.isDropped) {
      this.#table = this.open()
      this.#list = this.#table.lists.open(this.policies, this.penalty)
    }
    return this.#table
  }
}

const LOOKS = 16

/**
 * Has the store free keys that are full again: each second, or after 5 ms while it finds many. Returns a function that stops that.
 * The timer keeps neither the process nor the store alive: once a store is garbage-collected, it is not set again.
 */
function sweepInBackground(store: Memory): () => void {
  const weak = heldWeakly(store)
  let timer: ReturnType<typeof setTimeout>
  /** Sets the timer of the next sweep. After that sweep it is set again: for soon if more keys can be freed, else for a second. */
  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => {
      const alive = weak.deref() // undefined if the store was garbage-collected: then the sweeps end
      if (alive) schedule(alive.sweep() ? BUSY_MS : IDLE_MS)
    }, delayMs)
    timer.unref?.()
  }
  schedule(IDLE_MS)
  return () => clearTimeout(timer)
}

const IDLE_MS = 1000
const BUSY_MS = 5
