import { StoreError } from '@sluice/core'
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
 * The states of a store as rows of its table. An update is two statements, each of which is a transaction of its own: one reads
 * the rows and the clock, and after the process has decided one writes those that have changed, where their version is still the
 * one that was read. So nothing is locked while the process decides, and rows are locked in the order of their ids, whoever
 * writes them: batches of several processes cannot lock each other out.
 */
export class StateRows {
  /** The latest instant that was read. */
  latest = 0
  readonly #statements: Readonly<Record<'read' | 'write' | 'writeAll', Statement>>
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
    const { now, rows } = await this.#read(keys)
    const before = keys.map((key) => stateIn(rows.get(key)))
    const after = change(before, now)
    const changed = keys.flatMap((id, i): RowChange[] =>
      after[i]!.state === before[i] ? [] : [{ id, version: nextVersion(rows.get(id)), ...after[i]! }],
    )
    if (changed.length === 0) return []
    const written = await this.#write(changed, allOrNone)
    const lost = new Set(changed.flatMap(({ id }) => (written.has(id) ? [] : [id])))
    return lost.size === 0 ? [] : ids.filter((_, i) => lost.has(keys[i]!))
  }

  /** Reads these rows and Postgres's clock. A row that is not there is missing in the map. */
  async #read(ids: readonly string[]): Promise<{ now: number; rows: ReadonlyMap<string, Row> }> {
    const found = await this.#query(this.#statements.read, [arrayOf(ids)], false)
    this.latest = this.options.clock?.() ?? Number(found[0]!['now'])
    const rows = found.flatMap((row) => (row['id'] ? [[row['id'], row] as const] : []))
    return { now: this.latest, rows: new Map(rows) }
  }

  /**
   * Writes changed rows, each if it still has the version that was read, or all or none. Returns the ids that were
   * written. A race that Postgres itself has stopped counts as none written.
   */
  async #write(changed: readonly RowChange[], allOrNone: boolean): Promise<ReadonlySet<string>> {
    const values = [
      arrayOf(changed.map(({ id }) => id)),
      arrayOf(changed.map(({ version }) => version)),
      arrayOf(changed.map(({ expiresAt }) => expiresAt)),
      arrayOf(changed.map(({ state }) => (state ? hexOf(packed(state)) : '""'))),
    ]
    const { write, writeAll } = this.#statements
    try {
      const rows = await this.#query(allOrNone ? writeAll : write, values, true)
      return new Set(allOrNone ? changed.map(({ id }) => id) : rows.map(({ id }) => id!))
    } catch (error) {
      const state = sqlState((error as StoreError).cause)
      if (RACES.has(state ?? '')) return NONE
      throw error
    }
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

interface RowChange extends NewState {
  readonly id: string
  readonly version: number
}

/** Others were faster, and nothing was written: a version has changed, a serialization failure, a deadlock with foreign work. */
const RACES: ReadonlySet<string> = new Set(['22012', '40001', '40P01'])
const NONE: ReadonlySet<string> = new Set()

/**
 * The statements on a table. A row is written only if its version is the next, so that a change is never based on an
 * older one.
 */
function statementsFor(name: string): Record<'read' | 'write' | 'writeAll', Statement> {
  const table = quoted(name)
  const write = `insert into ${table} as kept (id, version, expires, state)
select new.id, new.version, new.expires, decode(new.state, 'hex')
from unnest($1::text::uuid[], $2::text::bigint[], $3::text::bigint[], $4::text::text[])
  as new (id, version, expires, state)
order by new.id
on conflict (id) do update set version = excluded.version, expires = excluded.expires, state = excluded.state
where kept.version = excluded.version - 1
returning kept.id::text`
  return {
    // There is always a row, for the clock.
    read: {
      name: `sluice read ${name}`,
      text: `select clock.now::text, kept.id::text, kept.version::text, encode(kept.state, 'hex') as state
from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now) clock
left join ${table} kept on kept.id = any ($1::text::uuid[])`,
    },
    write: { name: `sluice write ${name}`, text: write },
    // A statement that fails has written nothing: 1 / 0 unless all of them were written.
    writeAll: {
      name: `sluice write all ${name}`,
      text: `with written as (${write})
select (1 / (count(*) = cardinality($1::text::uuid[]))::int)::text as done from written`,
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

/** An empty state is that of a key which was reset. */
function stateIn(row: Row | undefined): Uint8Array | undefined {
  return row?.['state'] ? unpacked(Buffer.from(row['state'], 'hex')) : undefined
}

/** A row that is born begins anywhere, so that it is not taken for one that was swept in between. */
function nextVersion(row: Row | undefined): number {
  return row ? Number(row['version']) + 1 : Math.floor(Math.random() * 2 ** 52)
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}
