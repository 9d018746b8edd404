import type { Table } from './table.js'

/**
 * The slots of all tables of a store, in chunks of 64, so that a key can be drawn at random from all of them, however
 * many tables there are, and a hand can walk over all of them.
 */
export class Chunks {
  readonly #list: Chunk[] = []

  get length(): number {
    return this.#list.length
  }

  at(index: number): Chunk {
    return this.#list[index]!
  }

  /** The slots of `table` from `first` on. */
  add(table: Table, first: number): Chunk {
    const chunk = { table, first, index: this.#list.length }
    this.#list.push(chunk)
    return chunk
  }

  /** The last chunk takes its place. */
  remove(chunk: Chunk): void {
    const last = this.#list.pop()!
    if (last === chunk) return
    last.index = chunk.index
    this.#list[last.index] = last
  }
}

export interface Chunk {
  readonly table: Table
  readonly first: number
  /** Its place in the list. */
  index: number
}

export const CHUNK_SLOTS = 64
