import type { Policy } from '../../algorithms/contract/policy.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Booking, Correction, Keyspace } from '../store.js'
import type { PolicyList } from './policy-lists.js'
import type { Table } from './table.js'

/**
 * The tables of a store by limiter and shapes. Beyond `most`, the least recently opened tables without keys are dropped; they
 * hold no state, and are made again when their limiters need them.
 */
export class Tables {
  readonly #most: number
  readonly #byId = new Map<string, Table>()

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#byId.size
  }

  [Symbol.iterator](): MapIterator<Table> {
    return this.#byId.values()
  }

  /** The table of `id`, which becomes the most recently opened one. */
  open(id: string, make: () => Table): Table {
    const table = this.#byId.get(id) ?? make()
    this.#byId.delete(id)
    this.#byId.set(id, table)
    return table
  }

  /** Drops tables without keys while there are too many, but not `opened`. Returns whether one was dropped. */
  trim(opened: Table): boolean {
    const { size } = this.#byId
    let looks = LOOKS
    for (const [id, table] of this.#byId) {
      if (this.#byId.size <= this.#most || table === opened || looks-- === 0) break
      this.#byId.delete(id)
      if (table.cursor.rows.size > 0) this.#byId.set(id, table)
      else table.isDropped = true
    }
    return this.#byId.size < size
  }

  clear(): void {
    this.#byId.clear()
  }
}

/** Most tables that are checked in one call. Those with keys move to the end. */
const LOOKS = 16

/** A table under one list of policies. Lists of equal shapes share the table. */
export class MemoryKeyspace implements Keyspace, PolicyList {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  listNumber: number
  readonly #open: () => Table
  #table: Table

  /** `open` returns the table, now and again after it was dropped. */
  constructor(open: () => Table, policies: readonly Policy[], penalty: Penalty | undefined) {
    this.#open = open
    this.#table = open()
    this.policies = policies
    this.penalty = penalty
    this.listNumber = this.#table.lists.numberOf(policies)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const table = this.#table.isDropped ? this.#openTable() : this.#table
    return table.decide(this, ask, key, cost, maxWait)
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    return this.#openTable().confirm(booking)
  }

  cancel(booking: Booking): boolean {
    return this.#openTable().cancel(this.policies, booking)
  }

  correct(change: Correction): number {
    return this.#openTable().correct(this, change)
  }

  #openTable(): Table {
    if (this.#table.isDropped) {
      this.#table = this.#open()
      this.listNumber = this.#table.lists.numberOf(this.policies)
    }
    return this.#table
  }
}
