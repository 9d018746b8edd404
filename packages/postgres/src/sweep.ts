import { clockOf, type Database, fields, instantOf, statementOf } from './database.js'
import type { StateRows, StateRowsOptions } from './rows.js'

/**
 * Deletes expired rows. It walks over the pages of the table, a slice of some pages in each statement: an index on the expiry
 * would cost every update more than this costs all of them. Rows that are locked are passed over, so that it waits for none.
 */
export class Sweep {
  #timer: ReturnType<typeof setTimeout> | undefined
  #page = 0
  #isOver = false

  /**
   * Makes what deletes expired rows from the table of `rows`. Which have expired is decided by the clock of the options of `rows`, or
   * else by Postgres's own in each statement, and not by the time that this process has heard last: that may lie ahead, if the clock
   * was set back since.
   */
  constructor(
    readonly database: Database,
    readonly rows: Pick<StateRows, 'table'> & { readonly options: Pick<StateRowsOptions, 'clock'> },
  ) {}

  /** Begins to sweep, unless that has begun or the sweep is over. The timer keeps no process alive. */
  begin(): void {
    if (!this.#timer && !this.#isOver) this.#schedule(IDLE_MS)
  }

  /** Ends the sweep. */
  end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  /**
   * Deletes the expired rows of one slice, the next SLICE_PAGES pages of the table, and returns how many rows it deleted. Behind
   * the last page it goes on at the first. Rows that expired less than a minute ago stay, as they are likely to be written again.
   */
  async slice(): Promise<number> {
    const [from, to] = [this.#page, this.#page + SLICE_PAGES]
    const { table, options } = this.rows
    const values = [`(${from},0)`, `(${to},0)`, instantOf(options.clock)]
    const [found] = await this.database.query(statementOf(sweepOf(table)), values)
    const [gone, pages] = found!.map(Number) as [number, number]
    this.#page = to < pages ? to : 0
    return gone
  }

  /**
   * Sweeps a slice of the table after `delayMs` milliseconds, and then the next: soon if there were expired rows, otherwise after
   * a second. If a slice fails, no caller is affected, and the slice is swept again.
   */
  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => {
      const goOn = (deleted: number): void => {
        if (!this.#isOver) this.#schedule(deleted > 0 ? BUSY_MS : IDLE_MS)
      }
      this.slice().then(goOn, () => goOn(0))
    }, delayMs)
    this.#timer.unref()
  }
}

/**
 * Returns the statement that deletes the expired rows of some pages of the table, but for locked rows. Its values are the first page
 * and the one behind the last, each as the `ctid` of its first row, and the instant of the store's own clock (`instantOf`). It
 * returns the number of deleted rows and the number of pages of the whole table.
 */
function sweepOf(table: string): string {
  return `with gone as (
  delete from ${table} where ctid = any (array(
    select ctid from ${table}
    where ctid >= $1::text::tid and ctid < $2::text::tid and expires < ${clockOf('$3')} - ${IDLE_US}
    for update skip locked
  )) returning 1
)
select ${fields('count(*)', `pg_relation_size('${table.replaceAll("'", "''")}') / current_setting('block_size')::int`)} as row
from gone`
}

/** At most 1,000 rows: no row is smaller than 112 bytes with its pointer. */
const SLICE_PAGES = 13
const IDLE_MS = 1000
/** A row that expired a moment ago is likely to be written again, which costs less than to insert it anew. */
const IDLE_US = 60_000_000
const BUSY_MS = 10
