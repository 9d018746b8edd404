/**
 * The rows of all tables of a store, in chunks of 64, so that a key can be drawn at random from all tables, however many
 * there are, and all rows can be walked in order.
 */
export class Chunks<Table> {
  readonly list: Chunk<Table>[] = []

  /**
   * Adds the 64 rows of `table` from row number `first` on as a chunk, and returns it: the table removes it when it gives up its
   * rows. A full store draws a key to evict from the chunks of all its tables, and its sweep walks through them.
   */
  add(table: Table, first: number): Chunk<Table> {
    const chunk = { table, first, index: this.list.length }
    this.list.push(chunk)
    return chunk
  }

  /** Removes a chunk. The last one takes its place in the list, as moving all later ones would take longer. */
  remove(chunk: Chunk<Table>): void {
    const last = this.list.pop()!
    if (last === chunk) return
    last.index = chunk.index
    this.list[last.index] = last
  }
}

/** The owner of a table, which bounds the number of keys. */
export interface TableOwner<Table> {
  /** The rows of all its tables. */
  readonly chunks: Chunks<Table>
  now(): number
  /** How far its clock stands behind `now`, which never runs back, in microseconds. */
  readonly behind: number
  /** A table calls this before it adds a key. Evicts another key, of any table, if the store is full. */
  adding(now: number): void
  /** A table calls this after it added a key. */
  added(table: Table, row: number): void
  /** A table calls this after it removed a key. */
  removed(): void
}

export interface Chunk<Table> {
  readonly table: Table
  readonly first: number
  /** Its place in the list. */
  index: number
}

export const CHUNK_ROWS = 64
