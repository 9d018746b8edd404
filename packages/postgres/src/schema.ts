import { PolicyError, StoreError } from '@sluice/core'
import { type DeclarationOf, flag, read, text } from '@sluice/core/internal'
import type { Database, Row, Statement } from './database.js'
import { sqlState, storeError } from './failure.js'

export interface PostgresTableOptions {
  /**
   * The name of the table: letters, digits and underscores, also behind a schema and a point. In quotes: `Limits` is not
   * `limits`.
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

/** Options of a store's table, for those of the store too. */
export const TABLE = {
  table: text(
    'a name of letters, digits and underscores, also behind a schema and a point',
    /^([A-Za-z_]\w{0,62}\.)?[A-Za-z_]\w{0,62}$/,
    'sluice',
  ),
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
  const { table, logged } = read(TABLE, options, { what: 'postgresSchema', error: PolicyError })
  // An index on the expiry would make each update write to it, and to every other index: HOT updates need free space alone.
  return `create ${logged ? '' : 'unlogged '}table if not exists ${quoted(table)} (
  id uuid primary key,
  version bigint not null,
  expires bigint not null,
  state bytea not null
) with (fillfactor = 80);
`
}

/**
 * Returns the name of the table as it stands in a statement: in quotes, so that capital letters count. The name may begin with
 * that of a schema and a point; each of the two is then in quotes of its own.
 */
export function quoted(table: string): string {
  return table
    .split('.')
    .map((part) => `"${part}"`)
    .join('.')
}

export interface SetUpOptions {
  readonly table: string
  readonly logged: boolean
  readonly createTable: boolean
}

/**
 * Makes the store's table unless it is there (and `createTable` is set), checks that it is the store's, and marks it unless it is
 * marked: by a row of a fixed id whose version shows whether the table was emptied. A standby refuses that row, as it takes no
 * writes.
 * @throws {StoreError} STORE_READONLY on a standby, STORE_ERROR without the table, or with another one of its name.
 */
export async function setUp(database: Database, options: SetUpOptions): Promise<void> {
  try {
    let found = await look(database, options)
    if (found.columns === null && options.createTable) {
      await create(database, options)
      found = await look(database, options)
    }
    check(found, options)
    await database.query(markOf(options.table), [])
  } catch (error) {
    throw storeError(error, false)
  }
}

const LOOK = {
  name: 'sluice look',
  text: `select c.relpersistence::text as kept,
  (select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attname)
    from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
from (select to_regclass($1::text) as oid) t left join pg_class c on c.oid = t.oid`,
}

/**
 * Returns the known facts about the table: its columns with their types, in one text (null without the table), and whether it is
 * logged, which Postgres calls persistence ('p').
 */
async function look(database: Database, { table }: SetUpOptions): Promise<Row> {
  const [found] = await database.query(LOOK, [quoted(table)])
  return found!
}

/**
 * Makes the table. Another process may make it at the same moment, as "if not exists" looks before it makes. Postgres then
 * refuses this one, by one of three SQLSTATEs, which is no failure.
 */
async function create(database: Database, { table, logged }: SetUpOptions): Promise<void> {
  const text = postgresSchema({ table, logged })
  try {
    await database.query({ name: `sluice create ${table}`, text }, [])
  } catch (error) {
    // Two that make it at once: the other was first, as "if not exists" looks before it makes.
    if (!['23505', '42P07', '42710'].includes(sqlState(error) ?? '')) throw error
  }
}

/**
 * The id of the row that marks a table, in quotes. The version of that row is random and never changes. A table that was emptied, by
 * a crash or by `truncate`, has no such row until a store sets it up again, and then one of another version.
 */
export const MARK_ID = `'00000000-0000-0000-0000-000000000000'`

/**
 * Returns the statement that marks the table: it adds a row of a fixed id with a random version, unless that row is there. If the
 * table is emptied, as by a crash, its next mark has another version. By that each process notices that the rows it remembers
 * are gone. The mark has the latest expiry that the column can hold, so no sweep deletes it.
 */
function markOf(table: string): Statement {
  const values = `${MARK_ID}, (random() * 2 ^ 52)::bigint, 9223372036854775807, ''`
  return {
    name: `sluice mark ${table}`,
    text: `insert into ${quoted(table)} values (${values}) on conflict (id) do nothing`,
  }
}

const COLUMNS = 'expires bigint, id uuid, state bytea, version bigint'

/**
 * Checks the facts that `look` has found about the table: that it exists, has the columns of a store's table, and is logged if
 * that is asked for.
 * @throws {StoreError} STORE_ERROR if not, with what to do about it.
 */
function check({ columns, kept }: Row, { table, logged }: SetUpOptions): void {
  if (columns === null) {
    const what = `there is no table ${table}: make it with what postgresSchema() returns, or leave createTable true`
    throw refused(what)
  }
  if (columns !== COLUMNS) {
    throw refused(`the table ${table} must have the columns ${COLUMNS}, it has ${columns}`)
  }
  if (logged && kept !== 'p') {
    throw refused(`the table ${table} is unlogged: alter table ${quoted(table)} set logged`)
  }
}

function refused(message: string): StoreError {
  return new StoreError('STORE_ERROR', message, { sent: false })
}
