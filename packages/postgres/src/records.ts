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

/** Makes the records of the table of `rows`. `written` is called before each write. */
export function postgresRecords(rows: StateRows, written: () => void): Records {
  const clock = (): string => instantOf(rows.options.clock)
  return {
    async write(record, since) {
      written()
      const version = await writeRecord(rows, valuesOf(record, clock()))
      if (version === undefined && record.text !== '') return undefined
      return { ...(await changesSince(rows, since)), ...(version && { written: version }) }
    },
    async read(since, applied) {
      const ids = `{${applied.map(rowIdOf).join()}}`
      if (applied.length > 0) await query(rows, APPLIED, [ids, clock()], true)
      return changesSince(rows, since)
    },
  }
}

/** Runs a statement on the table, again where it lost a race with another transaction. */
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

/** Returns the records that were written after the version `since`; all records if a write of that version is not found. */
async function changesSince(rows: StateRows, since: number, isFound = since > 0): Promise<RecordChanges> {
  const [[now, latest] = []] = await query(rows, LATEST, [instantOf(rows.options.clock)], false)
  const current = { version: Number(latest), now: Number(now) }
  if (current.version === since) return { ...current, areAll: false, records: [] }
  const found = (await query(rows, SINCE, [`${isFound ? since : 0}`], false)).map(recordOf)
  if (isFound && !found.some(({ version }) => version === since)) return changesSince(rows, since, false)
  // A record without a text was removed.
  const records = found.filter(({ version, text }) => (isFound ? version > since : text !== ''))
  const version = Math.max(current.version, ...found.map((each) => each.version))
  return { ...current, version, areAll: !isFound, records }
}

/** Writes a record, and returns the version of that write; undefined if its group has no room. */
async function writeRecord(rows: StateRows, values: readonly string[]): Promise<number | undefined> {
  for (let tries = MOST_COUNTS; tries >= 0; tries--) {
    const [[hasRoom, version] = []] = await query(rows, WRITE, values, true)
    if (hasRoom !== 't') return undefined
    if (version !== '') return Number(version)
    // Of the writes that fill a group at once one is carried out, and the others count the group again.
  }
  throw keepsNothing(rows.table, true)
}

/** The parameters of WRITE. */
function valuesOf({ id, text, until, life, most }: NewRecord, clock: string): readonly string[] {
  const state = Buffer.concat([
    Buffer.from([text === '' ? 0 : 1]),
    Buffer.alloc(8),
    Buffer.from(JSON.stringify([id, text])),
  ])
  const [range, group] = [rowIdOf(id).slice(0, 16), [id.slice(0, id.indexOf('\n') + 1)]]
  return [
    rowIdOf(id),
    state.toString('hex'),
    `${Math.floor(until)}`,
    `${text === '' ? A_DAY : Math.floor(life)}`,
    clock,
    `${text === '' ? 0 : most}`,
    range.padEnd(32, '0'),
    range.padEnd(32, 'f'),
    Buffer.from(JSON.stringify(group).slice(0, -2)).toString('hex'),
  ]
}

function rowIdOf(id: string): string {
  const part = (of: string, digits: number): string =>
    hash('sha256', Buffer.from(of, 'utf16le'), 'hex').slice(0, digits)
  return PREFIX + part(id.slice(0, id.indexOf('\n')), 4) + part(id, 16)
}

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
 * Writes nothing where a record that is to be removed is not there, or has ended, or where a new one finds its group full; nor, and then
 * it has room and no version, where a group that is nearly full was counted before another write.
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
