import type { Database } from './database.js'
import { quoted } from './schema.js'

/**
 * Deletes rows that matter no more. It walks over the pages of the table, a slice in each statement: an index on the expiry
 * would cost every update more than this costs all of them. Rows that are locked are passed over, so that it waits for none.
 */
export class Sweep {
  readonly #statement: { readonly name: string; readonly text: string }
  #timer: ReturnType<typeof setTimeout> | undefined
  #page = 0
  #isOver = false

  /** Prepares the sweep. `now` returns the latest known instant of the store's clock. */
  constructor(
    readonly database: Database,
    table: string,
    readonly now: () => number,
  ) {
    this.#statement = { name: `sluice sweep ${table}`, text: sweepOf(quoted(table)) }
  }

  /** Begins, unless it has. It keeps no process alive. */
  begin(): void {
    if (!this.#timer && !this.#isOver) this.#schedule(IDLE_MS)
  }

  /** Ends the sweep. */
  end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  /** Sweeps one slice. Returns the rows that it deleted. */
  async slice(): Promise<number> {
    const [from, to] = [this.#page, this.#page + SLICE_PAGES]
    const values = [`(${from},0)`, `(${to},0)`, `${Math.floor(this.now() - IDLE_US)}`]
    const [found] = await this.database.query(this.#statement, values)
    this.#page = to < Number(found!['pages']) ? to : 0
    return Number(found!['gone'])
  }

  /** Sweeps a slice after this delay, and goes on sooner if it found expired rows. */
  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => {
      // A failure is none of any caller's: calls fail by themselves, and the slice is swept another time.
      const swept = this.slice().catch(() => 0)
      void swept.then((gone) => this.#isOver || this.#schedule(gone > 0 ? BUSY_MS : IDLE_MS))
    }, delayMs)
    this.#timer.unref()
  }
}

/**
 * The statement that deletes the expired rows of some pages. Its values are the first page, the one behind the last,
 * and the instant.
 */
function sweepOf(table: string): string {
  return `with gone as (
  delete from ${table} where ctid = any (array(
    select ctid from ${table}
    where ctid >= $1::text::tid and ctid < $2::text::tid and expires < $3::text::bigint
    for update skip locked
  )) returning 1
)
select count(*)::text as gone,
  (pg_relation_size('${table}') / current_setting('block_size')::int)::text as pages
from gone`
}

/** At most 1,000 rows: no row is smaller than 112 bytes with its pointer. */
const SLICE_PAGES = 13
const IDLE_MS = 1000
/** A row that expired a moment ago is likely to be written again, which costs less than to insert it anew. */
const IDLE_US = 60_000_000
const BUSY_MS = 10
