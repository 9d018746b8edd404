import { type Clock, systemClock } from '../clock.js'
import { CONTRACT, CONTRACT_NUMBER } from '../contract.js'
import { expected, PolicyError, StoreError } from '../errors.js'
import type { Policy } from '../policy.js'
import { MemoryPlaces } from '../semaphore/memory-places.js'
import type { Places, PlacesOptions } from '../semaphore/places.js'
import { MemoryKeyspace } from './memory/memory-keyspace.js'
import { sweepInBackground } from './memory/sweeper.js'
import { Table, type TableOwner } from './memory/table.js'
import type { Keyspace, Report, Store } from './store.js'

export interface MemoryStoreOptions {
  /**
   * Most keys held at once, over all limiters of the store; default 1,000,000, at most 8,388,608 (half of what a Map
   * of V8 can hold, as a Map under churn needs room for as many deleted entries).
   */
  readonly maxKeys?: number
  /** Microseconds, for tests and simulations. Default: wall time read once plus the monotonic clock. */
  readonly clock?: Clock
}

/**
 * Keeps state in this process: answers at once, needs no server, forgets at exit.
 *
 * Memory is bounded by `maxKeys`. When it is reached, keys whose allowance is full again are freed first; then the
 * key with most left among some sampled, exhausted and banned keys last ('evicted' is emitted for each).
 * @throws {PolicyError} INVALID_OPTION for a bad `maxKeys` or `clock`.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return new Memory(options)
}

export interface MemoryStore extends Store {
  /** Keys held now. */
  readonly size: number
}

const MOST_KEYS = 2 ** 23
const SLICE_SLOTS = 4096
const SLICE_MS = 1

class Memory implements MemoryStore, TableOwner {
  readonly [CONTRACT] = CONTRACT_NUMBER
  readonly local = true
  readonly #maxKeys: number
  readonly #clock: Clock
  readonly #shelves = new Map<string, Shelf>()
  readonly #places = new MemoryPlaces()
  #stopSweeping: (() => void) | undefined
  #size = 0
  #latest = 0
  #closed = false

  constructor({ maxKeys = 1_000_000, clock = systemClock() }: MemoryStoreOptions) {
    if (!(Number.isInteger(maxKeys) && maxKeys >= 1 && maxKeys <= MOST_KEYS)) {
      const bound = `maxKeys must be a whole number from 1 to ${MOST_KEYS}`
      throw expected(PolicyError, 'INVALID_OPTION', bound, maxKeys)
    }
    if (typeof clock !== 'function') {
      throw expected(
        PolicyError,
        'INVALID_OPTION',
        'clock must be a function that returns microseconds',
        clock,
      )
    }
    this.#maxKeys = maxKeys
    this.#clock = clock
  }

  get size(): number {
    return this.#size
  }

  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    const id = [name, ...policies.map((policy) => policy.shape)].join('\n')
    let shelf = this.#shelves.get(id)
    if (!shelf) {
      const table = new Table(policies, this)
      this.#shelves.set(id, (shelf = { table, reports: new Set(), warned: false }))
    }
    shelf.reports.add(report)
    return new MemoryKeyspace(shelf.table, policies)
  }

  now(): number {
    if (this.#closed) throw new StoreError('CLOSED', 'the store is closed')
    const now = Math.floor(this.#clock())
    if (now > this.#latest) this.#latest = now // also passes over NaN
    return this.#latest
  }

  places(options: PlacesOptions): Places {
    return this.#places.of(options)
  }

  /** The timer begins with the first key: some platforms refuse one while modules are loaded. */
  adding(now: number): void {
    this.#stopSweeping ??= sweepInBackground(this)
    if (this.#size >= this.#maxKeys) this.#evict(now)
    this.#size++
  }

  removed(): void {
    this.#size--
  }

  /** Frees what is full again, for at most 1 ms; true when much of what it saw was. */
  sweep(): boolean {
    const now = this.now()
    const end = performance.now() + SLICE_MS
    let seen = 0
    let freed = 0
    for (const { table } of this.#shelves.values()) {
      const slots = Math.min(SLICE_SLOTS, table.cursor.slots.top)
      for (let i = 0; i < slots && performance.now() < end; i += 16) {
        freed += table.retention.sweep(16, now)
        seen += 16
      }
      table.forgetOldBookings(now)
    }
    return freed * 4 > seen
  }

  close(): void {
    this.#closed = true
    this.#stopSweeping?.()
    this.#shelves.clear()
  }

  /** Takes a key out of the table that holds most. */
  #evict(now: number): void {
    let fullest: Shelf | undefined
    for (const shelf of this.#shelves.values()) {
      if (!fullest || shelf.table.cursor.slots.size > fullest.table.cursor.slots.size) fullest = shelf
    }
    const key = fullest!.table.retention.evict(now)
    if (key === undefined) return
    for (const report of fullest!.reports) {
      report({ event: 'evicted', key })
      if (!fullest!.warned) report({ event: 'warning', ...FULL })
    }
    fullest!.warned = true
  }
}

interface Shelf {
  readonly table: Table
  readonly reports: Set<Report>
  warned: boolean
}

const FULL = {
  code: 'STORE_FULL',
  message: 'the memory store holds maxKeys keys and begins to forget some that still count',
}
