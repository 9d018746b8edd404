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
