import type { NewRecord, RecordChanges, Records, StoredRecord } from '@sluice/core/store'
import { hash } from 'node:crypto'
import { clockOf, fields, instantOf, type Row, statementOf } from './database.js'
import { isRace, storeError } from './failure.js'
import type { StateRows } from './rows.js'
import { keepsNothing } from './schema.js'

/*
 * The records of operators about single keys, each a row. Their ids begin alike, so that all are read as a range of the primary key:
 * six bytes, two of the group, eight of the record. The first of the range has the version of the latest write: who writes a record
 * locks it, so writes are seen in the order of their versions. A record that was removed stays as a row for a day. A
 * state is a byte, 0 if it was removed, the instant at which it last applied in 8 bytes, then id and text in JSON.
 */
const PREFIX = hash('sha256', 'records', 'hex').slice(0, 12)
const [FIRST, LAST] = [PREFIX.padEnd(32, '0'), PREFIX.padEnd(32, 'f')]

/**
 * Makes what reads and writes the records of operators (overrides, blocks and holds of single keys), each in a row of the table of
 * `rows`. Each write has a version, by which a reader asks for all that is newer. `written` is called before each write.
 */
export function postgresRecords(rows: StateRows, written: () => void): Records {
  const clock = (): string => instantOf(rows.options.clock)
  return {
    async write(record, since) {
      written()
      const version = await writeRecord(rows, valuesOf(record, clock()))
      return version === undefined ? undefined : { ...(await changesSince(rows, since)), written: version }
    },
    async read(since, applied) {
      const ids = `{${applied.map(rowIdOf).join()}}`
      if (applied.length > 0) await query(rows, APPLIED, [ids, clock()], true)
      return changesSince(rows, since)
    },
  }
}

/**
 * Runs the statement that `text` makes for the table, and returns the rows of its result. If it lost a race with another transaction,
 * it is run again, up to MOST_TRIES times. `writes` says whether it may have changed something, for the error.
 */
async function query(
  rows: StateRows,
  text: (table: string) => string,
  values: readonly string[],
  writes: boolean,
): Promise<readonly Row[]> {
  await rows.setUp()
  for (let tries = MOST_TRIES; ; tries--) {
    try {
      return await rows.database.query(statementOf(text(rows.table)), values)
    } catch (error) {
      if (tries === 0 || !isRace(error)) throw storeError(error, writes)
    }
  }
}

/**
 * Returns the records that were written after the version `since`, or all of them if that is 0 (`areAll`). The record of that version
 * itself is read too: if it is not there any more, removals may have been lost, so all records are returned instead.
 */
async function changesSince(rows: StateRows, since: number, areAll = since === 0): Promise<RecordChanges> {
  const [[now, latest] = []] = await query(rows, LATEST, [instantOf(rows.options.clock)], false)
  const current = { version: Number(latest), now: Number(now) }
  if (current.version === since) return { ...current, areAll: false, records: [] }
  const found = (await query(rows, SINCE, [`${areAll ? 0 : since}`], false)).map(recordOf)
  const isComplete = areAll || found.some(({ version }) => version === since)
  if (!isComplete) return changesSince(rows, since, true)
  const isRemoval = ({ text }: StoredRecord): boolean => text === ''
  const records = found.filter((record) => (areAll ? !isRemoval(record) : record.version > since))
  const version = Math.max(current.version, ...found.map((each) => each.version))
  return { ...current, version, areAll, records }
}

/**
 * Writes a record, by the parameters that `valuesOf` has made, and returns the version of that write; undefined if its group (the
 * records of one kind of one limiter) is full. If other writes filled the group meanwhile, the statement has written nothing and
 * returns no version: it is then run again.
 */
async function writeRecord(rows: StateRows, values: readonly string[]): Promise<number | undefined> {
  for (let tries = MOST_COUNTS; tries >= 0; tries--) {
    const [[hasRoom, version] = []] = await query(rows, WRITE, values, true)
    if (hasRoom !== 't') return undefined
    const isWritten = version !== ''
    if (isWritten) return Number(version)
    // Of the writes that fill a group at once one is carried out, and the others count the group again.
  }
  throw keepsNothing(rows.table, true)
}

/**
 * Returns the nine parameters of the statement WRITE for a record: the id of its row; its bytes, which are a byte that is 0 for a
 * removal, the instant when it last applied (0), and its id and text; its end, or 0 and the time that it lasts, in microseconds; the
 * clock; the most records of its group; and by what the rows of that group are found. A record without a text is a removal, which
 * stays in its row for a day, so that readers hear of it.
 */
function valuesOf({ id, text, until, life, most }: NewRecord, clock: string): readonly string[] {
  const isRemoval = text === ''
  const appliedAt = Buffer.alloc(8)
  const state = Buffer.concat([
    Buffer.from([isRemoval ? 0 : 1]),
    appliedAt,
    Buffer.from(JSON.stringify([id, text])),
  ])
  const rowId = rowIdOf(id)
  const beginningOfGroup = rowId.slice(0, 16)
  const group = id.slice(0, id.indexOf('\n') + 1)
  return [
    rowId,
    state.toString('hex'),
    `${Math.floor(until)}`,
    `${isRemoval ? A_DAY : Math.floor(life)}`,
    clock,
    `${isRemoval ? Number.MAX_SAFE_INTEGER : most}`,
    beginningOfGroup.padEnd(32, '0'),
    beginningOfGroup.padEnd(32, 'f'),
    // As the JSON of each record of the group begins.
    Buffer.from(JSON.stringify([group]).slice(0, -2)).toString('hex'),
  ]
}

/** The id of the row of a record: what all records have in common, then hashes of its group and of its own id. */
function rowIdOf(id: string): string {
  const hashOf = (text: string, digits: number): string =>
    hash('sha256', Buffer.from(text, 'utf16le'), 'hex').slice(0, digits)
  const group = id.slice(0, id.indexOf('\n'))
  return PREFIX + hashOf(group, 4) + hashOf(id, 16)
}

/**
 * Reads a record back from its row. The bytes are in hexadecimal digits: one byte that says whether it stands, 8 bytes with the instant
 * at which it last applied, then a JSON list of its id and its text.
 */
function recordOf([version, until, hex]: Row): StoredRecord {
  const state = Buffer.from(hex!, 'hex')
  const [id, text] = JSON.parse(state.toString('utf8', 9)) as [string, string]
  return {
    id,
    text,
    version: Number(version),
    until: Number(until),
    appliedAt: Number(state.readBigInt64BE(1)),
  }
}

const MOST_TRIES = 5
/** Times that a write counts its group again, of which another filled the last place or the table drops what is written. */
const MOST_COUNTS = 100
/** Microseconds. */
const A_DAY = 86_400_000_000
/** More than the writes that a database carries out at once. */
const AT_ONCE = 1000
const RANGE = `id > '${FIRST}' and id <= '${LAST}'`

const LATEST = (table: string): string =>
  `select ${fields(clockOf('$1'), `coalesce((select version from ${table} where id = '${FIRST}'), 0)`)} as row`

const SINCE = (table: string): string =>
  `select ${fields('version', 'expires', "encode(state, 'hex')")} as row from ${table} where ${RANGE} and version >= $1::bigint`

const APPLIED = (
  table: string,
): string => `update ${table} set state = substring(state for 1) || int8send(${clockOf('$2')}) || substring(state from 10)
where id in (select id from ${table} where id = any ($1::uuid[]) for update skip locked) returning ${fields("''")} as row`

/**
 * Writes nothing where a new record finds its group full; nor, and then it has room and no version, where a group that is nearly full
 * was counted before another write.
 */
const WRITE = (table: string): string => `with at as (select ${clockOf('$5')} as now), held as (
  select id, state from ${table}, at where id between $7::uuid and $8::uuid and expires > now and get_byte(state, 0) = 1
), room as (
  select $6::bigint - count(*) as free, coalesce(bool_or(id = $1::uuid), false) as is_held from held
  where id = $1::uuid or substring(state from 10 for length($9::text) / 2) = decode($9::text, 'hex')
), latest as (
  insert into ${table} as kept (id, version, expires, state)
  select '${FIRST}', greatest(now, 1), greatest($3::bigint, now + $4::bigint) + ${A_DAY}, '\\x00'
  from at, room where is_held or free > 0
  on conflict (id) do update set version = greatest(kept.version + 1, excluded.version), expires = greatest(kept.expires, excluded.expires)
  where (select free from room) > ${AT_ONCE} or kept.version = (select version from ${table} where id = '${FIRST}')
  returning version
), written as (
  insert into ${table} as kept (id, version, expires, state)
  select $1::uuid, version, case when $3::bigint > 0 then $3::bigint else now + $4::bigint end, decode($2, 'hex') from latest, at
  on conflict (id) do update set version = excluded.version, expires = excluded.expires, state = excluded.state
  returning version
)
select ${fields('is_held or free > 0', '(select version from written)')} as row from room`
