import type { Table } from './table.js'

/**
 * The tables of a store by limiter and shapes, at most `most` that hold no key. Beyond that the one that was opened least
 * recently goes: it says nothing, and is made anew when its limiter comes back.
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

  /** The table of `id`, which from now on is the one that was opened last. */
  open(id: string, make: () => Table): Table {
    const table = this.#byId.get(id) ?? make()
    this.#byId.delete(id)
    this.#byId.set(id, table)
    return table
  }

  /** Lets tables without keys go while there are too many, but not `opened`; returns whether one went. */
  trim(opened: Table): boolean {
    const { size } = this.#byId
    let looks = LOOKS
    for (const [id, table] of this.#byId) {
      if (this.#byId.size <= this.#most || table === opened || looks-- === 0) break
      this.#byId.delete(id)
      if (table.cursor.slots.size > 0) this.#byId.set(id, table)
      else table.isDropped = true
    }
    return this.#byId.size < size
  }

  clear(): void {
    this.#byId.clear()
  }
}

/** Tables that are looked at in one call: those that hold keys are put off. */
const LOOKS = 16
