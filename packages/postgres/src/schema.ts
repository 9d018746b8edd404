import { PolicyError, StoreError } from '@sluice/core'
import { type DeclarationOf, flag, readOptions, text } from '@sluice/core/internal'
import { type Database, fields, statementOf } from './database.js'
import { isRace, READONLY, sqlState, storeError } from './failure.js'

export interface PostgresTableOptions {
  /**
   * The schema of the table, which must be there. Each statement names it, whatever `search_path` a session has. Default: the
   * schema in which the first session of the store finds the table, or makes it.
   */
  readonly schema?: string | undefined
  /**
   * The name of the table: letters, digits and underscores. In quotes: `Limits` is not `limits`.
   * @default 'sluice'
   */
  readonly table?: string
  /**
   * Whether the table is written to the log of Postgres, so that it outlives a crash and a failover. Each decision then waits for the
   * disk. Without it a crash or a failover empties the table: all counts, blocks and permits begin anew. docs/outages.md has
   * both in numbers.
   * @default false
   */
  readonly logged?: boolean
}

const [A_NAME, NAME] = ['a name of letters, digits and underscores', /^[A-Za-z_]\w{0,62}$/]
/** Options of a store's table, for those of the store too. */
export const TABLE = {
  schema: text(A_NAME, NAME),
  table: text(A_NAME, NAME, 'sluice'),
  logged: flag(false),
} satisfies DeclarationOf<PostgresTableOptions>

/**
 * The statement that makes the table, for migrations. A store that makes its table itself carries out the same.
 * @throws {PolicyError} INVALID_OPTION for a bad option.
 * @example
 * import { postgresSchema } from '@sluice/postgres'
 * console.log(postgresSchema({ table: 'limits' }))
 */
export function postgresSchema(options: PostgresTableOptions = {}): string {
  const { schema, table, logged } = readOptions(TABLE, options, {
    what: 'postgresSchema',
    error: PolicyError,
  })
  // An index on the expiry would make each update write to it, and to every other index: HOT updates need free space alone.
  return `create ${logged ? '' : 'unlogged '}table if not exists ${quoted(table, schema)} (
  id uuid primary key,
  version bigint not null,
  expires bigint not null,
  state bytea not null
) with (fillfactor = 80);
`
}

/** Returns the name of a table as it stands in a statement: in quotes, so that capital letters count, behind that of its schema. */
export function quoted(table: string, schema?: string): string {
  const named = `"${table}"`
  return schema === undefined ? named : `"${schema.replaceAll('"', '""')}".${named}`
}

export interface SetUpOptions {
  readonly schema: string | undefined
  readonly table: string
  readonly logged: boolean
  readonly createTable: boolean
}

/**
 * Makes the store's table unless it is there (and `createTable` is set), checks that it is the store's, and marks it unless it is
 * marked: by a row of a fixed id whose version shows whether the table was emptied. Returns what is known of it.
 * @throws {StoreError} STORE_READONLY on a standby, STORE_ERROR without the table, or with another one of its name.
 */
export async function setUp(database: Database, options: SetUpOptions): Promise<TableFacts> {
  try {
    let found = await lookUpTable(database, options)
    if (!found.columns && found.schema && options.createTable) {
      const here = { ...options, schema: found.schema }
      await makeTable(database, here)
      found = await lookUpTable(database, here)
    }
    checkTable(found, options)
    await markTable(database, quoted(options.table, found.schema))
    return found
  } catch (error) {
    throw storeError(error, false)
  }
}

/** The known facts about a table, as texts. */
export interface TableFacts {
  /** What Postgres calls persistence: 'p' for a table that is logged. */
  readonly kept: string
  /** 'on' where the session takes no writes. */
  readonly readonly: string
  /** 't' where the table has rules. */
  readonly rules: string
  /** 't' where another schema has a table of this name. */
  readonly twin: string
  /** The columns with their types; empty without the table. */
  readonly columns: string
  /** The schema of the table, or the one in which it would be made; empty if there is none. */
  readonly schema: string
}

const LOOK = statementOf(`select ${fields(
  'c.relpersistence',
  "current_setting('transaction_read_only')",
  'exists (select from pg_rewrite where ev_class = c.oid)',
  `exists (select from pg_class o where o.relname = $2 and o.relkind = 'r' and o.relpersistence <> 't' and o.oid is distinct from c.oid)`,
  `(select string_agg(a.attname || ' ' || replace(format_type(a.atttypid, a.atttypmod), '"', ''), ', ' order by a.attname)
    from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)`,
  'coalesce((select nspname from pg_namespace n where n.oid = c.relnamespace), current_schema())',
)} as row
from (select to_regclass($1::text) as oid) t left join pg_class c on c.oid = t.oid`)

/**
 * Looks up what Postgres knows of the store's table: whether it is logged (`kept`), whether the server is read-only, whether the table
 * has rules and a twin of the same name in another schema, its columns and its schema. Without the option `schema` that is the one to
 * which the `search_path` of the session leads.
 */
async function lookUpTable(database: Database, { schema, table }: SetUpOptions): Promise<TableFacts> {
  const [row] = await database.query(LOOK, [quoted(table, schema), table])
  const [kept, readonly, rules, twin, columns, ...rest] = row as [
    string,
    string,
    string,
    string,
    string,
    ...string[],
  ]
  // The name of a schema may have the bar that separates fields.
  return { kept, readonly, rules, twin, columns, schema: schema ?? rest.join('|') }
}

/**
 * Makes the table. Another process may make it at the same moment, as "if not exists" looks before it makes. Postgres then
 * refuses the statement of this one, with one of three SQLSTATEs, which is no failure.
 */
async function makeTable(database: Database, { schema, table, logged }: SetUpOptions): Promise<void> {
  try {
    await database.query(statementOf(postgresSchema({ schema, table, logged })), [])
  } catch (error) {
    if (!['23505', '42P07', '42710'].includes(sqlState(error) ?? '')) throw error
  }
}

/**
 * The id of the row that marks a table, in quotes. The version of that row is random and never changes. A table that was emptied, by
 * a crash or by `truncate`, has no such row until a store sets it up again, and then one of another version.
 */
export const MARK_ID = `'00000000-0000-0000-0000-000000000000'`

/**
 * Marks the table: adds a row of a fixed id with a random version, unless that row is there. If the table is emptied, as by a crash,
 * its next mark has another version. By that each process notices that the rows it remembers are gone. The mark has the latest
 * expiry that the column can hold, so no sweep deletes it. Of stores that mark a table at once all but one lose a race, and look again.
 * @throws {StoreError} STORE_ERROR if the mark is not there after ten attempts.
 */
async function markTable(database: Database, table: string): Promise<void> {
  const values = `${MARK_ID}, (random() * 2 ^ 52)::bigint, 9223372036854775807, ''`
  const looking = statementOf(`select '|' as row from ${table} where id = ${MARK_ID}`)
  const marking = statementOf(`insert into ${table} values (${values}) on conflict (id) do nothing`)
  for (let tries = 0; tries < MOST_MARKS; tries++) {
    try {
      if ((await database.query(looking, [])).length > 0) return
      await database.query(marking, [])
    } catch (error) {
      if (!isRace(error)) throw error
    }
  }
  throw keepsNothing(table, false)
}

const MOST_MARKS = 10
const COLUMNS = 'expires bigint, id uuid, state bytea, version bigint'

/**
 * Checks the facts that `lookUpTable` has found about the table: that it takes writes, exists, has the columns of a store's table and no
 * rule, and is logged if that is asked for.
 * @throws {StoreError} STORE_READONLY or STORE_ERROR if not, with what to do about it.
 */
function checkTable(
  { columns, kept, readonly, rules, schema }: TableFacts,
  { table, logged }: SetUpOptions,
): void {
  if (readonly === 'on') {
    throw new StoreError('STORE_READONLY', `Postgres takes no writes here${READONLY}`, { sent: false })
  }
  if (!schema)
    throw refused(`search_path has no schema for the table ${table}: name one by the option schema`)
  if (!columns) {
    const what = `there is no table ${table}: make it with what postgresSchema() returns, or leave createTable true`
    throw refused(what)
  }
  if (columns !== COLUMNS) {
    throw refused(`the table ${table} must have the columns ${COLUMNS}, it has ${columns}`)
  }
  if (rules === 't')
    throw refused(`the table ${table} has a rule, which keeps it from being written: drop rule`)
  if (logged && kept !== 'p') {
    throw refused(`the table ${table} is unlogged: alter table ${quoted(table, schema)} set logged`)
  }
}

/** The error of a table that does not keep its rows as they were written. `sent`: whether a statement that writes was carried out. */
export function keepsNothing(table: string, sent: boolean): StoreError {
  return refused(
    `the table ${table} does not keep its rows as written: a trigger drops or changes them`,
    sent,
  )
}

function refused(message: string, sent = false): StoreError {
  return new StoreError('STORE_ERROR', message, { sent })
}
