import type { StoreError } from '@sluice/core'
import { ExpiringMap } from '@sluice/core/internal'
import type { Clock, NewState, UpdateMany } from '@sluice/core/store'
import { hash } from 'node:crypto'
import type { Database, Row, Statement } from './database.js'
import { sqlState, storeError } from './failure.js'
import { packed, unpacked } from './packed.js'
import { quoted, setUp, type SetUpOptions } from './schema.js'

export interface StateRowsOptions extends SetUpOptions {
  /** Microseconds; undefined for the clock of Postgres. */
  readonly clock: Clock | undefined
}

/**
 * The states of a store as rows of its table. An update is at most two statements, each of which is a transaction of its own: one
 * reads the rows and the clock, and after the process has decided one writes those that have changed, where their version is still
 * the one that was read. So nothing is locked while the process decides, and rows are locked in the order of their ids, whoever
 * writes them: batches of several processes cannot lock each other out.
 *
 * A row that no other process was seen to write is not read for a call that comes alone: the process decides on the row as it was
 * left, at an instant that Postgres's clock has just passed, and one statement writes it if its version and the clock say so.
 * Otherwise, or if the decision writes nothing, as a denial does, the call is decided in two statements.
 */
export class StateRows {
  /** The latest instant that was read. */
  latest = 0
  /** When that was, by `performance.now()`. */
  #latestAt = 0
  readonly #left = new ExpiringMap<LeftRow>(MOST_LEFT, LEFT_MS)
  readonly #statements: Readonly<Record<StatementName, Statement>>
  #isSetUp: Promise<void> | undefined

  constructor(
    readonly database: Database,
    readonly options: StateRowsOptions,
  ) {
    this.#statements = statementsFor(options.table)
  }

  /** Makes and checks the table, once. After a failure the next call tries again. */
  setUp(): Promise<void> {
    this.#isSetUp ??= setUp(this.database, this.options).catch((error: unknown) => {
      this.#isSetUp = undefined
      throw error
    })
    return this.#isSetUp
  }

  readonly updateMany: UpdateMany = async (ids, change, { allOrNone }) => {
    await this.setUp()
    const keys = ids.map(rowIdOf)
    if (keys.length === 1 && (await this.#updateAsLeft(keys[0]!, change))) return []
    const rows = await this.#read(keys)
    const before = keys.map((key) => stateIn(rows.get(key)?.hex))
    const after = change(before, this.latest)
    const changed = keys.flatMap((id, i): RowChange[] =>
      after[i]!.state === before[i] ? [] : [changeOf(id, rows.get(id), after[i]!)],
    )
    if (changed.length === 0) return []
    const written = await this.#write(changed, allOrNone)
    const lost = new Set(changed.flatMap(({ id }) => (written.has(id) ? [] : [id])))
    if (keys.length > 1) for (const key of keys) this.#left.delete(key)
    else if (lost.size === 0) this.#leave(changed[0]!)
    return lost.size === 0 ? [] : ids.filter((_, i) => lost.has(keys[i]!))
  }

  /** Updates a row as this process has left it. Returns whether that is how the row still was. */
  async #updateAsLeft(id: string, change: Parameters<UpdateMany>[1]): Promise<boolean> {
    const row = this.#left.get(id)
    if (!row?.isOwn) return false
    const { clock } = this.options
    const now = Math.floor(clock?.() ?? this.latest + (performance.now() - this.#latestAt) * 1000)
    const before = stateIn(row.hex)
    const after = change([before], now)[0]!
    if (after.state === before) return false
    const changed = changeOf(id, row, after)
    const { version, expiresAt, hex } = changed
    const late = clock ? Infinity : LATE_S
    const values = [id, version, `${expiresAt}`, hex, row.version, `${now / 1e6 + LATE_S}`, `${late}`]
    const [written] = await this.#tryWrite(this.#statements.writeAsLeft, values)
    if (!written) return false
    this.#heard(Number(written['now']) * 1e6)
    this.#leave(changed)
    return true
  }

  /** Reads these rows and Postgres's clock. A row that is not there is missing in the map. */
  async #read(ids: readonly string[]): Promise<ReadonlyMap<string, LeftRow>> {
    const found = await this.#query(this.#statements.read, [arrayOf(ids)], false)
    this.#heard(Number(found[0]!['now']))
    const rows = new Map<string, LeftRow>()
    for (const { id, version, state: hex } of found) {
      if (!id) continue
      const isOwn = (this.#left.get(id)?.version ?? version) === version
      rows.set(id, { version: version!, hex: hex!, isOwn })
    }
    return rows
  }

  /** Writes changed rows, each if it still has the version that was read, or all or none. Returns the ids that were written. */
  async #write(changed: readonly RowChange[], allOrNone: boolean): Promise<ReadonlySet<string>> {
    const values = [
      arrayOf(changed.map(({ id }) => id)),
      arrayOf(changed.map(({ version }) => version)),
      arrayOf(changed.map(({ expiresAt }) => expiresAt)),
      arrayOf(changed.map(({ hex }) => hex || '""')),
      arrayOf(changed.flatMap(({ basis }) => basis ?? [])),
    ]
    const { write, writeAll } = this.#statements
    const rows = await this.#tryWrite(allOrNone ? writeAll : write, values)
    return new Set(rows.map(({ id }) => id!))
  }

  /** Runs a statement that writes. A race that Postgres itself has stopped counts as none written. */
  async #tryWrite(statement: Statement, values: readonly string[]): Promise<readonly Row[]> {
    try {
      return await this.#query(statement, values, true)
    } catch (error) {
      if (RACES.has(sqlState((error as StoreError).cause) ?? '')) return []
      throw error
    }
  }

  /** Remembers a row as it was written. Long states, those of logs, are read each time. */
  #leave(row: RowChange): void {
    if (row.hex.length <= MOST_LEFT_DIGITS) this.#left.set(row.id, row, performance.now())
  }

  /** Takes note of Postgres's clock. */
  #heard(now: number): void {
    this.latest = Math.floor(this.options.clock?.() ?? now)
    this.#latestAt = performance.now()
  }

  /**
   * Runs a statement. Its failure becomes a StoreError, which says that the statement may have been carried out if it
   * `writes`.
   */
  async #query(statement: Statement, values: readonly string[], writes: boolean): Promise<readonly Row[]> {
    try {
      return await this.database.query(statement, values)
    } catch (error) {
      // A table that was dropped or altered meanwhile is looked at again by the next call.
      if (sqlState(error)?.startsWith('42')) this.#isSetUp = undefined
      throw storeError(error, writes)
    }
  }
}

/** A row as it was when this process read or wrote it. */
interface LeftRow {
  readonly version: string
  /** The state in hexadecimal digits, as the statements have it: none is that of a key which was reset. */
  readonly hex: string
  /** Whether it was not seen to be written by another process since this one wrote it. */
  readonly isOwn: boolean
}

interface RowChange extends LeftRow {
  readonly id: string
  readonly expiresAt: number
  /** The version of the row that the change is based on; undefined for a row that is born. */
  readonly basis: string | undefined
}

/** Versions are random, so that no row is taken for another that was there before a crash or a sweep. */
function changeOf(id: string, row: LeftRow | undefined, { state, expiresAt }: NewState): RowChange {
  const version = `${Math.floor(Math.random() * 2 ** 52)}`
  const hex = state ? hexOf(packed(state)) : ''
  return {
    id,
    version,
    hex,
    expiresAt: Math.min(expiresAt, LAST_INSTANT),
    basis: row?.version,
    isOwn: row?.isOwn ?? true,
  }
}

function stateIn(hex: string | undefined): Uint8Array | undefined {
  return hex ? unpacked(Buffer.from(hex, 'hex')) : undefined
}

type StatementName = 'read' | 'write' | 'writeAll' | 'writeAsLeft'

/** Others were faster, and nothing was written: a version has changed, a serialization failure, a deadlock with foreign work. */
const RACES: ReadonlySet<string> = new Set(['22012', '40001', '40P01'])
/** No clock goes beyond it, in the year 2255, and a bigint holds it. */
const LAST_INSTANT = 2 ** 53
/** Rows that are remembered: their number, the digits of a state, and for how long. */
const [MOST_LEFT, MOST_LEFT_DIGITS, LEFT_MS] = [20_000, 1000, 60_000]
/** Half of the seconds by which Postgres's clock may be past the instant of a decision on a row as it was left: a long way. */
const LATE_S = 0.125

/** The statements on a table. A row is written only if its version is the one that the change is based on. */
function statementsFor(name: string): Record<StatementName, Statement> {
  const table = quoted(name)
  const clock = '(extract(epoch from clock_timestamp()) * 1000000)::bigint'
  const write = `insert into ${table} as kept (id, version, expires, state)
select new.id, new.version, new.expires, decode(new.state, 'hex')
from unnest($1::text::uuid[], $2::text::bigint[], $3::text::bigint[], $4::text::text[])
  as new (id, version, expires, state)
order by new.id
on conflict (id) do update set version = excluded.version, expires = excluded.expires, state = excluded.state
where kept.version = any ($5::bigint[])
returning kept.id::text`
  return {
    // There is always a row, for the clock. Each id is looked up by itself: with "any" Postgres compares each row of a table of
    // some hundred rows with each id.
    read: {
      name: `sluice read ${name}`,
      text: `select clock.now::text, kept.id::text, kept.version::text, encode(kept.state, 'hex') as state
from (select ${clock} as now) clock
left join (
  unnest($1::text::uuid[]) as asked (id)
  cross join lateral (select * from ${table} where id = asked.id offset 0) kept
) on true`,
    },
    write: { name: `sluice write ${name}`, text: write },
    // A statement that fails has written nothing: 1 / 0 unless all of them were written.
    writeAll: {
      name: `sluice write all ${name}`,
      text: `with written as (${write})
select id, (1 / (count(*) over () = cardinality($1::text::uuid[]))::int)::text as done from written`,
    },
    writeAsLeft: {
      name: `sluice write as left ${name}`,
      text: `update ${table}
set version = $2, expires = $3, state = decode($4, 'hex')
where id = $1 and version = $5 and abs(date_part('epoch', now()) - $6) < $7
returning date_part('epoch', clock_timestamp()) as now`,
    },
  }
}

/** An array as Postgres reads it, of numbers and of texts that need no quotes. */
function arrayOf(values: readonly (string | number)[]): string {
  return `{${values.join()}}`
}

/** Half of the SHA-256 of the id's UTF-16 units: unlike a text it takes any key, and two lone surrogates stay apart. */
function rowIdOf(id: string): string {
  const digest = hash('sha256', Buffer.from(id, 'utf16le'), 'hex')
  return digest.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')
}

function hexOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('hex')
}
