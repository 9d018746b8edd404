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
  #latestAt = 0
  readonly #left = new ExpiringMap<LeftRow>(MOST_LEFT, LEFT_MS)
  readonly #statements: Readonly<Record<StatementName, Statement>>
  #isSetUp: Promise<void> | undefined

  /** Writes the statements for the table of the options. */
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
    // A call of several keys is carried out again as a whole, so none of its decisions may be in doubt.
    const own = allOrNone ? new Map<string, LeftRow>() : this.#ownRows(keys)
    const isRead = own.size < keys.length
    const rows = isRead ? await this.#read(keys, own) : own
    const now = isRead ? this.latest : this.#estimate()
    const before = keys.map((key) => stateIn(rows.get(key)?.hex))
    const after = change(before, now)
    const changed = keys.flatMap((id, i): RowChange[] =>
      after[i]!.state === before[i] ? [] : [changeOf(id, rows.get(id), after[i]!)],
    )
    const late = isRead || this.options.clock ? Infinity : LATE_S
    const written = changed.length > 0 ? await this.#write(changed, { now, late, allOrNone }) : NONE
    const stands = new Set(keys.filter((key) => !own.has(key)))
    for (const row of changed) {
      if (written.has(row.version)) stands.add(row.id)
      else stands.delete(row.id)
    }
    this.#leave(changed, keys, stands)
    return ids.filter((_, i) => !stands.has(keys[i]!))
  }

  /** The rows of these that are as this process left them, as far as it knows. */
  #ownRows(ids: readonly string[]): Map<string, LeftRow> {
    const own = new Map<string, LeftRow>()
    for (const id of ids) {
      const row = this.#left.get(id)
      if (row?.isOwn) own.set(id, row)
    }
    return own
  }

  /** An instant that Postgres's clock has passed by the way of its last answer, unless one of the two clocks was set. */
  #estimate(): number {
    const { clock } = this.options
    return Math.floor(clock?.() ?? this.latest + (performance.now() - this.#latestAt) * 1000)
  }

  /** Adds those of these rows that are not known, and reads Postgres's clock. A row that is not there is missing in the map. */
  async #read(
    ids: readonly string[],
    known: ReadonlyMap<string, LeftRow>,
  ): Promise<ReadonlyMap<string, LeftRow>> {
    const asked = ids.filter((id) => !known.has(id))
    const found = await this.#query(this.#statements.read, [arrayOf(asked)], false)
    this.#heard(Number(found[0]!['now']))
    const rows = new Map(known)
    for (const { nth, version, state: hex } of found) {
      if (!nth) continue
      const id = asked[Number(nth) - 1]!
      const isOwn = (this.#left.get(id)?.version ?? version) === version
      rows.set(id, { version: version!, hex: hex!, isOwn })
    }
    return rows
  }

  /**
   * Writes changed rows, each if it still has the version that the change is based on, or all or none; and none unless Postgres's
   * clock is past `now` by less than twice `late` seconds. Returns the versions that were written.
   */
  async #write(
    changed: readonly RowChange[],
    { now, late, allOrNone }: { now: number; late: number; allOrNone: boolean },
  ): Promise<ReadonlySet<string>> {
    const time = [`${now / 1e6 + LATE_S}`, `${late}`]
    const [{ id, version, expiresAt, hex, basis }] = changed as [RowChange]
    const isOne = changed.length === 1 && basis !== undefined
    const { write, writeAll, writeOne } = this.#statements
    const rows = isOne
      ? await this.#tryWrite(writeOne, [id, version, `${expiresAt}`, hex, basis, ...time])
      : await this.#tryWrite(allOrNone ? writeAll : write, [...columnsOf(changed), ...time])
    if (rows.length > 0) this.#heard(Number(rows[0]!['now']) * 1e6)
    return new Set(rows.map(({ version }) => version!))
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

  /**
   * Remembers the rows that were written as they are now, and of those whose decision does not stand that they are to be read.
   * Long states, those of logs, are read each time.
   */
  #leave(changed: readonly RowChange[], ids: readonly string[], stands: ReadonlySet<string>): void {
    const now = performance.now()
    for (const { id, version, hex, isOwn } of changed) {
      if (hex.length > MOST_LEFT_DIGITS) this.#left.delete(id)
      else if (stands.has(id)) this.#left.set(id, { version, hex, isOwn }, now)
    }
    for (const id of ids) {
      if (!stands.has(id))
        this.#left.set(id, { version: '', hex: '', ...this.#left.get(id), isOwn: false }, now)
    }
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
  /** A random number, also where nothing is known but that it is not this process that wrote it last: empty. */
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

type StatementName = 'read' | 'write' | 'writeAll' | 'writeOne'

/** Others were faster, and nothing was written: a version has changed, a serialization failure, a deadlock with foreign work. */
const RACES: ReadonlySet<string> = new Set(['22012', '40001', '40P01'])
/** No clock goes beyond it, in the year 2255, and a bigint holds it. */
const LAST_INSTANT = 2 ** 53
/** Rows that are remembered: their number, the digits of a state, and for how long. */
const [MOST_LEFT, MOST_LEFT_DIGITS, LEFT_MS] = [20_000, 1000, 60_000]
/** Half of the seconds by which Postgres's clock may be past the instant of a decision on a row as it was left: a long way. */
const LATE_S = 0.125

/**
 * The statements on a table. A row is written only if its version is the one that the change is based on, null for a row that is
 * born. Each id is looked up by itself: with "any" or a join Postgres compares each row of a table of some hundred rows with each id.
 */
function statementsFor(name: string): Record<StatementName, Statement> {
  const table = quoted(name)
  const clock = '(extract(epoch from clock_timestamp()) * 1000000)::bigint'
  // Rows are looked at before they are locked: one that is gone, after a crash, is not written as it was before.
  const write = `insert into ${table} as kept (id, version, expires, state)
select new.id, new.version, new.expires, decode(new.state, 'hex')
from unnest($1::text::uuid[], $2::text::bigint[], $3::text::bigint[], $4::text::text[], $5::text::bigint[])
  as new (id, version, expires, state, basis)
left join lateral (select version from ${table} where id = new.id offset 0) found on true
where found.version is not distinct from new.basis and abs(date_part('epoch', now()) - $6) < $7
order by new.id
on conflict (id) do update set version = excluded.version, expires = excluded.expires, state = excluded.state
where kept.version = any ($5::text::bigint[])
returning kept.version::text, date_part('epoch', now())::text as now`
  return {
    // There is always a row, for the clock.
    read: {
      name: `sluice read ${name}`,
      text: `select clock.now::text, kept.nth::text, kept.version::text, encode(kept.state, 'hex') as state
from (select ${clock} as now) clock
left join (
  unnest($1::text::uuid[]) with ordinality as asked (id, nth)
  cross join lateral (select version, state from ${table} where id = asked.id offset 0) row
) kept on true`,
    },
    write: { name: `sluice write ${name}`, text: write },
    // A statement that fails has written nothing: 1 / 0 unless all of them were written.
    writeAll: {
      name: `sluice write all ${name}`,
      text: `with written as (${write})
select *, (1 / (count(*) over () = cardinality($1::text::uuid[]))::int)::text as done from written`,
    },
    writeOne: {
      name: `sluice write one ${name}`,
      text: `update ${table} set version = $2, expires = $3, state = decode($4, 'hex')
where id = $1 and version = $5 and abs(date_part('epoch', now()) - $6) < $7
returning version::text, date_part('epoch', now())::text as now`,
    },
  }
}

/** The values of the columns of changed rows, each as an array. */
function columnsOf(changed: readonly RowChange[]): string[] {
  return [
    arrayOf(changed.map(({ id }) => id)),
    arrayOf(changed.map(({ version }) => version)),
    arrayOf(changed.map(({ expiresAt }) => expiresAt)),
    arrayOf(changed.map(({ hex }) => hex || '""')),
    arrayOf(changed.map(({ basis }) => basis ?? 'null')),
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

function hexOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('hex')
}

const NONE: ReadonlySet<string> = new Set()
