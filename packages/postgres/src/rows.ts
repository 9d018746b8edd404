import { ExpiringMap } from '@sluice/core/internal'
import type { Clock, Report, UpdateMany } from '@sluice/core/store'
import { hash } from 'node:crypto'
import { CLOCK, type Database, fields, type Row, type Statement, statementOf } from './database.js'
import { isRace, sqlState, storeError } from './failure.js'
import { packed, unpacked } from './packed.js'
import { keepsNothing, MARK_ID, quoted, setUp, type SetUpOptions } from './schema.js'

export interface StateRowsOptions extends SetUpOptions {
  /** Microseconds; undefined for the clock of Postgres. */
  readonly clock: Clock | undefined
}

/**
 * The states of a store as rows of its table. An update is at most two statements, each of which is a transaction of its own: one
 * reads the rows and the clock, and after the process has decided one writes those that have changed, where their version is still
 * the one that was read. So nothing is locked while the process decides, and rows are locked in the order of their ids, whichever process
 * writes them: batches of several processes cannot lock each other out.
 *
 * A row that no other process was seen to write is not read: the process decides on the row as it was left, at an instant that
 * Postgres's clock has just passed, and the statement that writes it looks whether its version and the clock say so. Otherwise,
 * and where a decision writes nothing, as a denial does, the row is read and decided on again.
 */
export class StateRows {
  /** The latest instant that was read. */
  latest = 0
  /** When that was, by `performance.now()`. */
  #latestAt = -Infinity
  /** The version of the row that marks the table, as it was read last. Where another is read, the table has been emptied since. */
  #mark = ''
  #known = new ExpiringMap<KnownRow>(MOST_KNOWN, KNOWN_MS)
  /** The table as statements name it, with the schema in which the first set-up has found or made it. */
  table = ''
  /** What it is reported to, once, that a `search_path` leads to another table. */
  report: Report | undefined
  #schema: string | undefined
  /** Whether another schema has a table of this name, and no option says which is the store's. */
  #hasTwin = false
  #statements!: Readonly<Record<StatementName, Statement>>
  #isSetUp: Promise<void> | undefined

  /**
   * Makes what reads and writes the rows of the store's table, one for each key. Nothing is asked of Postgres yet. `options` name the
   * table; `#schema` is the schema that it is in, as named or, until the first set-up has found it, unknown.
   */
  constructor(
    readonly database: Database,
    readonly options: StateRowsOptions,
  ) {
    this.#schema = options.schema
  }

  /**
   * Makes the table where there is none, checks that it is the store's, and marks it by a row whose version shows whether the
   * table was emptied later. It does so once for all calls; after a failure the next call tries again. Later set-ups keep to the
   * schema that the first has found, as the `search_path` of another session may differ. Where no schema was named, a twin, which is
   * a table of the same name in another schema, is warned of.
   */
  setUp(): Promise<void> {
    const { table, schema: named } = this.options
    this.#isSetUp ??= setUp(this.database, { ...this.options, schema: this.#schema }).then(
      ({ schema, twin }) => {
        this.#hasTwin ||= named === undefined && twin === 't'
        this.#schema = schema
        this.table = quoted(table, schema)
        this.#statements = statementsFor(this.table, named === undefined ? quoted(table) : this.table)
      },
      (error: unknown) => {
        this.#isSetUp = undefined
        throw error
      },
    )
    return this.#isSetUp
  }

  /**
   * Carries out `change` on the states of these ids, and returns the ids whose change does not count, to be decided on again:
   * another process was faster to write their rows. A row is trusted as this process left it, and not read again, if no other was
   * seen to write it (`isOwn`), Postgres's clock was heard within the last second, and no call has several keys (`allOrNone`).
   * The change of a trusted row does not count either if it writes nothing, as a denial does: nothing proves then that the row
   * is still the same.
   */
  readonly updateMany: UpdateMany = async (ids, change, { allOrNone }) => {
    await this.setUp()
    const known = ids.map((id) => this.#known.get(id))
    const knownMark = this.#mark
    // A call of several keys is carried out again as a whole, so none of its decisions may be in doubt.
    const mayTrust = !allOrNone && performance.now() - this.#latestAt < FRESH_MS
    const trusted = known.map((row) => (row?.isOwn && mayTrust ? row : undefined))
    const isClockRead = trusted.includes(undefined) // with the rows that are not trusted
    const rows = isClockRead ? await this.#read(ids, known, trusted) : trusted
    const now = isClockRead ? this.latest : this.#instantReached()
    const states = rows.map((row) => row?.state)
    const changed: RowChange[] = []
    for (const [nth, { state, expiresAt }] of change(states, now).entries()) {
      if (state === states[nth]) continue
      changed.push(changeOf(nth, rows[nth] ?? newRow(ids[nth]!), state, expiresAt))
    }
    const halfSpanS = isClockRead || this.options.clock ? Infinity : HALF_SPAN_S // see #write
    // Trusted rows are written only into the table in which they were left.
    const mark = trusted.some((row) => row !== undefined) ? knownMark : this.#mark
    const written =
      changed.length > 0 ? await this.#write(changed, { now, halfSpanS, mark, allOrNone }) : NONE
    const stands = trusted.map((row) => row === undefined) // whether the change of each id counts
    for (const { nth, row } of changed) stands[nth] = written.has(row.version)
    this.#remember(ids, changed, stands)
    return ids.filter((_, nth) => !stands[nth])
  }

  /**
   * Returns the instant, in microseconds, for a decision on rows that are not read: what Postgres's clock said last, and the time
   * since. As that leaves out how long the last answer was on its way, Postgres's clock has already passed the instant. A clock in
   * the options is asked instead. If Postgres's clock was set meanwhile, the statement that writes finds out, and writes nothing.
   */
  #instantReached(): number {
    const { clock } = this.options
    return Math.floor(clock?.() ?? this.latest + (performance.now() - this.#latestAt) * 1000)
  }

  /**
   * Returns the rows of these ids, undefined for one that is not there. Those in `trusted` are taken as they are; all others are
   * read, and Postgres's clock with them. `known` has the rows as this process left them: if the version of a row is another now,
   * another process has written it, and it is not this one's own any more. If the table has no mark (a row that every store's table
   * has), it was emptied, and is set up again; if it has another mark than before, it was emptied since, so all that is remembered
   * of it is forgotten. A read that lost a race with another transaction is repeated in the same way, at most `tries` times.
   */
  async #read(
    ids: readonly string[],
    known: readonly (KnownRow | undefined)[],
    trusted: readonly (KnownRow | undefined)[],
    tries = MOST_READS,
  ): Promise<readonly (KnownRow | undefined)[]> {
    const asked = ids.flatMap((id, nth) => (trusted[nth] ? [] : [{ nth, id: known[nth]?.id ?? rowIdOf(id) }]))
    const values = [arrayOf(asked.map(({ id }) => id))]
    const found = await this.#query(this.#statements.read, values, false)
    const [now, mark, isAstray] = found[0] ?? []
    if (!mark) {
      if (tries === 0) throw keepsNothing(this.table, false)
      this.#isSetUp = undefined
      await this.setUp()
      return this.#read(ids, known, trusted, tries - 1)
    }
    if (isAstray === 't' || this.#hasTwin) this.#warn()
    if (mark !== this.#mark) this.#known = new ExpiringMap(MOST_KNOWN, KNOWN_MS)
    this.#mark = mark
    this.#noteClock(Number(now))
    const rows = [...trusted]
    // Each row of the result has the clock and the mark, and behind them a row of the table, if there is one.
    for (const [, , , place, version, hex] of found) {
      if (!place) continue
      const { nth, id } = asked[Number(place) - 1]!
      const isOwn = (known[nth]?.version ?? version) === version
      rows[nth] = { id, version: version!, state: stateIn(hex!), isOwn }
    }
    return rows
  }

  /** Warns once that a session may take another table for that of the store, by its `search_path`. */
  #warn(): void {
    const message =
      `by its search_path a session of Postgres may take another ${this.options.table} than ${this.table}, where this store counts, and a ` +
      `process of such sessions counts apart: name the schema in all, as by postgresStore(pool, { schema: '${this.#schema}' })`
    this.report?.({ event: 'warning', code: 'POSTGRES_SEARCH_PATH', message })
    this.report = () => {}
  }

  /**
   * Writes changed rows and returns the versions that were written: random numbers, new for each change. A row is written if it
   * still has the version that its change is based on; with `allOrNone` all rows are written or none. Two more conditions must
   * hold. The table must have this `mark`, which it lost if it was emptied; only a single row that existed needs none, as it
   * would be gone with its version. And Postgres's clock must lie between `now` and twice `halfSpanS` seconds later, so that a
   * decision at a wrong instant is not kept. If the clock was read or is not Postgres's, `halfSpanS` is Infinity: any time will do.
   * @throws {StoreError} STORE_ERROR if a version comes back that was not sent, as a trigger has changed it.
   */
  async #write(
    changed: readonly RowChange[],
    { now, halfSpanS, mark, allOrNone }: { now: number; halfSpanS: number; mark: string; allOrNone: boolean },
  ): Promise<ReadonlySet<string>> {
    const middleS = now / 1e6 + HALF_SPAN_S
    const time = [`${middleS}`, `${halfSpanS}`]
    const [{ row, expiresAt, hex, basis }] = changed as [RowChange]
    const isOneThatExisted = changed.length === 1 && basis !== ''
    const { write, writeAll, writeOne } = this.#statements
    const rows = isOneThatExisted
      ? await this.#query(writeOne, [row.id, row.version, `${expiresAt}`, hex, basis, ...time], true)
      : await this.#query(allOrNone ? writeAll : write, [...columnsOf(changed), ...time, mark], true)
    const written = rows.map(([version]) => version!)
    const sent = new Set(changed.map((change) => change.row.version))
    if (!written.every((version) => sent.has(version))) throw keepsNothing(this.table, true)
    return new Set(written)
  }

  /**
   * Remembers the rows of these ids for the next update, so that they need not be read. `stands` says of each id whether its
   * decision counts: a changed row is then remembered as it was written. Otherwise another process may have written it, so it is
   * marked to be read. Long states, which sliding logs have, are not remembered, and are read each time.
   */
  #remember(ids: readonly string[], changed: readonly RowChange[], stands: readonly boolean[]): void {
    const now = performance.now()
    for (const { nth, row, hex } of changed) {
      if (hex.length > MOST_KNOWN_DIGITS) this.#known.delete(ids[nth]!)
      else if (stands[nth]) this.#known.set(ids[nth]!, row, now)
    }
    for (const [nth, id] of ids.entries()) {
      if (!stands[nth]) this.#known.set(id, { ...(this.#known.get(id) ?? newRow(id)), isOwn: false }, now)
    }
  }

  /** Notes what Postgres's clock says, in microseconds, and when it was heard. A clock in the options takes its place. */
  #noteClock(now: number): void {
    this.latest = Math.floor(this.options.clock?.() ?? now)
    this.#latestAt = performance.now()
  }

  /**
   * Runs a statement and returns its rows, none if Postgres stopped it because of a race with another transaction. Another failure
   * becomes a StoreError, which says that the statement may have been carried out if it `writes`. If the table itself is not as
   * expected (SQLSTATE 42...), the next call sets it up again. A statement that is not supported (0A000) was sent to a standby, or
   * to a table with a rule: setting up again throws the error that says which.
   */
  async #query(statement: Statement, values: readonly string[], writes: boolean): Promise<readonly Row[]> {
    try {
      return await this.database.query(statement, values)
    } catch (error) {
      if (isRace(error)) return []
      const state = sqlState(error) ?? ''
      if (/^(42|0A000)/.test(state)) this.#isSetUp = undefined
      if (state === '0A000') await this.setUp()
      throw storeError(error, writes)
    }
  }
}

/** A row as it was when this process read or wrote it. */
interface KnownRow {
  /** Half of a digest, in hexadecimal digits. */
  readonly id: string
  /** A random number; empty for a row that is not there, and where nothing is known but that another process wrote it. */
  readonly version: string
  /** Undefined for a key that was reset. */
  readonly state: Uint8Array | undefined
  /** Whether it was not seen to be written by another process since this one wrote it. */
  readonly isOwn: boolean
}

interface RowChange {
  /** The place of the row in its batch. */
  readonly nth: number
  /** The row as it is after the change. */
  readonly row: KnownRow
  readonly expiresAt: number
  /** The state in hexadecimal digits, as the statements have it. */
  readonly hex: string
  /** The version of the row that the change is based on; empty for a row that is born. */
  readonly basis: string
}

/** Returns the row of an id that nothing is known of: without a state and without a version. */
function newRow(id: string): KnownRow {
  return { id: rowIdOf(id), version: '', state: undefined, isOwn: true }
}

/**
 * Returns the change of the row at place `nth` of its batch to a new state, kept until the instant `expiresAt` in microseconds.
 * It is based on the version that the row has now, and gets a new one. Versions are random, so that no row is taken for another
 * that was there before a crash or a sweep. A state of undefined, of a key that was reset, becomes an empty one.
 */
function changeOf(
  nth: number,
  { id, version: basis, isOwn }: KnownRow,
  state: Uint8Array | undefined,
  expiresAt: number,
): RowChange {
  const version = `${Math.floor(Math.random() * 2 ** 52)}`
  const hex = state ? packed(state).toString('hex') : ''
  return {
    nth,
    row: { id, version, state, isOwn },
    hex,
    expiresAt: Math.min(expiresAt, LAST_INSTANT),
    basis,
  }
}

/**
 * Returns the state of a row from its column in hexadecimal digits; undefined if it is empty, as that of a key that was reset.
 */
function stateIn(hex: string): Uint8Array | undefined {
  return hex ? unpacked(Buffer.from(hex, 'hex')) : undefined
}

type StatementName = 'read' | 'write' | 'writeAll' | 'writeOne'

/** Times that a read is repeated whose table has no mark, or that lost a race. */
const MOST_READS = 5
/** No clock goes beyond it, in the year 2255, and a bigint holds it. */
const LAST_INSTANT = 2 ** 53
/** Rows that are remembered: their number, the digits of a state, and for how long. */
const [MOST_KNOWN, MOST_KNOWN_DIGITS, KNOWN_MS] = [20_000, 1000, 60_000]
/** Half of the seconds by which Postgres's clock may be past the instant of a decision on a row as it was left: a long way. */
const HALF_SPAN_S = 0.125
/** For how long after a read of Postgres's clock the process counts the time itself. */
const FRESH_MS = 1000

/**
 * Returns the statements on a table. Those that write take what `#write` gives them: the columns of the rows ($1 to $5, the last is the
 * version that the row must still have, or -1), the middle and the half of the span in which Postgres's clock must lie ($6, $7), and the
 * mark ($8). Each id is looked up by itself: with "any" or a join Postgres compares each row of a table of some hundred rows with each
 * id. `bySession` is the table's name as a session may resolve it: the read tells where that is another table.
 */
function statementsFor(table: string, bySession: string): Record<StatementName, Statement> {
  // Arrays are parameters by themselves: a cast in the statement would be carried out for every row.
  const isAstray =
    table !== bySession
      ? `to_regclass('${bySession}') is distinct from to_regclass('${table.replaceAll("'", "''")}')`
      : 'false'
  const mark = `(select version from ${table} where id = ${MARK_ID})`
  const write = `insert into ${table} as kept (id, version, expires, state)
select id, version, expires, state
from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bytea[]) as new (id, version, expires, state)
where ${mark} = $8 and abs(date_part('epoch', now()) - $6) < $7
order by id
on conflict (id) do update set version = excluded.version, expires = excluded.expires, state = excluded.state
where kept.version = any ($5::bigint[])
returning ${fields('version')} as row`
  return {
    // There is always a row, for the clock.
    read: statementOf(`select ${fields('clock.now', 'clock.mark', 'clock.is_astray', 'kept.nth', 'kept.version', "encode(kept.state, 'hex')")} as row
from (select ${CLOCK} as now, ${mark} as mark, ${isAstray} as is_astray) clock
left join (
  unnest($1::uuid[]) with ordinality as asked (id, nth)
  cross join lateral (select version, state from ${table} where id = asked.id offset 0) row
) kept on true`),
    write: statementOf(write),
    // All or none: it divides by 0 unless all rows were written, and a statement that fails has written nothing.
    writeAll: statementOf(`with written as (${write})
select *, (1 / (count(*) over () = cardinality($1::uuid[]))::int)::text as done from written`),
    writeOne: statementOf(`update ${table} set version = $2, expires = $3, state = decode($4, 'hex')
where id = $1 and version = $5 and abs(date_part('epoch', now()) - $6) < $7
returning ${fields('version')} as row`),
  }
}

/**
 * Returns the values of the columns of changed rows, each column as an array that Postgres reads: ids, new versions, expiries,
 * states, and the versions that the changes are based on. That is -1 for a row that does not exist yet, and not null, as a session
 * may have set `array_nulls` off.
 */
function columnsOf(changed: readonly RowChange[]): string[] {
  return [
    arrayOf(changed.map(({ row }) => row.id)),
    arrayOf(changed.map(({ row }) => row.version)),
    arrayOf(changed.map(({ expiresAt }) => expiresAt)),
    arrayOf(changed.map(({ hex }) => `\\\\x${hex}`)),
    arrayOf(changed.map(({ basis }) => basis || '-1')),
  ]
}

/** An array as Postgres reads it, of numbers and of texts that need no quotes. */
function arrayOf(values: readonly (string | number)[]): string {
  return `{${values.join()}}`
}

/** Half of the SHA-256 of the id's UTF-16 units: unlike a text it takes any key, and two lone surrogates stay apart. */
function rowIdOf(id: string): string {
  return hash('sha256', Buffer.from(id, 'utf16le'), 'hex').slice(0, 32)
}

const NONE: ReadonlySet<string> = new Set()
