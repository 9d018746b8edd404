import { PolicyError, StoreError } from '@sluice/core'
import { expectedButGot } from '@sluice/core/internal'
import type { Clock } from '@sluice/core/store'
import { hash } from 'node:crypto'

/** A Pool of `pg`. Described by what is used of it, as no client need be installed. A Client, which is one connection, has no count. */
export interface PgPool {
  readonly totalCount: number
  query(statement: {
    readonly text: string
    readonly values: readonly string[]
    readonly name?: string
  }): Promise<{ readonly rows: readonly unknown[] }>
  on?(event: 'error', listener: (error: Error) => void): unknown
  off?(event: 'error', listener: (error: Error) => void): unknown
}

/** A client of `postgres`, or one of Bun.SQL. What its `begin` and `reserve` hand out is one connection, and no client. */
export interface PostgresJsClient {
  // oxlint-disable-next-line typescript/no-explicit-any -- its own type of parameters is wider than text
  unsafe(text: string, values: any[], options?: { prepare?: boolean }): UnreadRows
  // oxlint-disable-next-line typescript/no-explicit-any -- its own type has overloads
  begin(...args: any[]): unknown
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  readonly options: any
}

/** A query of `postgres`, whose rows come as bytes if they are asked for so. */
export interface UnreadRows {
  raw(): PromiseLike<readonly unknown[]>
}

/** The fields of a row as texts, empty for null. */
export type Row = readonly string[]

/** The database of a store. */
export interface Database {
  /** Where it is, for messages, if that is known; never credentials. */
  readonly endpoint: string | undefined
  /** Whether the client prepares statements by itself, which PgBouncer does not allow in transaction mode. */
  readonly prepares: boolean
  query(statement: Statement, values: readonly string[]): Promise<readonly Row[]>
  /** Ends the connections that the store made. A client that was handed in stays open. */
  close(): Promise<void>
}

/** A text of SQL, with the name that it is prepared under. It returns rows of one column, which `fields` makes. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** Returns the statement of a text, named by its digest: Postgres cuts longer names. */
export function statementOf(text: string): Statement {
  return { name: `sluice ${hash('sha256', text, 'hex').slice(0, 32)}`, text }
}

/** The expression of SQL for the clock of Postgres in microseconds. */
export const CLOCK = '(extract(epoch from clock_timestamp()) * 1000000)::bigint'

/** The expression of SQL for the clock of Postgres in microseconds, or for the instant in a parameter, which `instantOf` makes. */
export function clockOf(parameter: string): string {
  return `case when ${parameter}::bigint < 0 then ${CLOCK} else ${parameter}::bigint end`
}

/** The instant of a store's own clock, in microseconds, as a statement takes it: -1 for a store that goes by Postgres's. */
export function instantOf(clock: Clock | undefined): string {
  return `${Math.floor(clock?.() ?? -1)}`
}

/**
 * Returns the expression of SQL for one column that has these columns as the fields of a row, in one text that begins with a bar: no
 * parser or transform that an application has set for its client takes it for a number or a null.
 */
export function fields(...columns: readonly string[]): string {
  return `concat('|', ${columns.join(", '|', ")})`
}

/** Returns the fields of a row of one column, which `fields` has made: a text, or its bytes. */
function rowOf(row: unknown): Row {
  return String((row as readonly unknown[])[0])
    .slice(1)
    .split('|')
}

/**
 * Returns the database behind a pool that was handed in, of `pg` or of `postgres`, or behind a URL, for which the store makes
 * its own connections. With `prepare`, statements are prepared by name. A single connection is refused: the application's own
 * transactions on it would take decisions back, a race would end them, and the store would end with it.
 * @throws {PolicyError} INVALID_OPTION for what is neither.
 */
export function databaseOf(client: unknown, prepare: boolean): Database {
  if (typeof client === 'string') return new OwnDatabase(client, prepare)
  if (isPostgresJs(client)) return overPostgresJs(client, prepare)
  if (isPg(client)) return overPg(client, prepare)
  const what =
    'postgresStore takes a pool, as a transaction on a single connection would take decisions back: ' +
    'new Pool({ connectionString }) of pg, postgres(url), or a URL'
  throw expectedButGot(PolicyError, 'INVALID_OPTION', what, client)
}

/**
 * Whether a value is a Pool of pg. Asks for what it has and not for its class, as an application may have another copy of the
 * package.
 */
function isPg(value: unknown): value is PgPool {
  const { query, totalCount } = (value ?? {}) as Partial<PgPool>
  return typeof query === 'function' && typeof totalCount === 'number'
}

/**
 * Whether a value is a client of postgres, which is a function with methods. A single connection of it, in a transaction or reserved,
 * lacks `begin`, or has `savepoint` or `release` beside it, and is refused.
 */
function isPostgresJs(value: unknown): value is PostgresJsClient {
  const { unsafe, begin, release, savepoint } = (value ?? {}) as Record<string, unknown>
  return typeof unsafe === 'function' && typeof begin === 'function' && !release && !savepoint
}

/**
 * Returns a database, by which the store runs statements, over a client of pg that was handed in. Closing it only removes the listener,
 * and leaves the client open. Statements are prepared by their names only with `prepare`: pg itself prepares none (`prepares`).
 */
function overPg(client: PgPool, prepare: boolean): Database {
  // pg emits 'error' when an idle connection breaks, which ends a process that does not listen.
  const ignore = (): void => {}
  client.on?.('error', ignore)
  const { options } = client as { readonly options?: { host?: string; port?: number } }
  return {
    endpoint: addressOf(options?.host, options?.port),
    prepares: false,
    /** Runs a statement and returns its rows. Its name, by which pg prepares it, goes along only with `prepare`. */
    async query({ name, text }, values) {
      const { rows } = await client.query({ text, values, ...AS_TEXT, ...(prepare && { name }) })
      return rows.map(rowOf)
    },
    async close() {
      client.off?.('error', ignore)
    },
  }
}

/** In place of the parsers that the application has set, for text too. */
const AS_TEXT = { rowMode: 'array', types: { getTypeParser: () => String } }

/**
 * Returns a database over a client of postgres that was handed in, and stays open. That client prepares statements by itself,
 * unless its options say otherwise (`prepares`). Its options may list hosts and ports, of which the first is named in messages.
 */
function overPostgresJs(client: PostgresJsClient, prepare: boolean): Database {
  const { host, hostname, port, prepare: prepares } = client.options
  return {
    endpoint: addressOf([host ?? hostname].flat()[0], [port].flat()[0]),
    prepares: prepares !== false,
    query: async ({ text }, values) => (await client.unsafe(text, [...values], { prepare }).raw()).map(rowOf),
    close: async () => {},
  }
}

/** Returns `host:port` for messages, with the default port of Postgres; undefined without a host. */
function addressOf(host: string | undefined, port: number | string | undefined): string | undefined {
  return host === undefined ? undefined : `${host}:${port ?? 5432}`
}

/** Connections that the store makes from a URL, with `pg` or, where that is not installed, with `postgres`. */
class OwnDatabase implements Database {
  readonly endpoint: string | undefined
  readonly prepares = false
  #opened: Promise<Database> | undefined
  #end: (() => Promise<void>) | undefined
  #isClosed = false

  /**
   * Checks the URL and reads the address from it. The first call connects.
   * @throws {PolicyError} INVALID_OPTION for a URL of another kind, without the URL, which may hold a password.
   */
  constructor(
    readonly url: string,
    readonly prepare: boolean,
  ) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (!parsed || !/^postgres(ql)?:$/.test(parsed.protocol)) {
      const what = 'the URL of a Postgres begins with postgres:// or postgresql://'
      throw new PolicyError('INVALID_OPTION', what)
    }
    this.endpoint = addressOf(parsed.hostname || undefined, parsed.port || undefined)
  }

  /** Runs a statement and returns its rows. The first call connects, and the others wait for that. */
  async query(statement: Statement, values: readonly string[]): Promise<readonly Row[]> {
    this.#opened ??= this.#open()
    return (await this.#opened).query(statement, values)
  }

  /**
   * Ends the connections that this database made. If the client package is still being loaded, there are none yet: `#isClosed`
   * then makes `#open` end them as soon as it has made them.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    const end = this.#end
    this.#end = undefined
    await end?.()
  }

  /**
   * Makes the connections with the first client package that is installed, pg or postgres, and returns the database over them. If
   * this database was closed while the package was loaded, the connections are ended at once.
   * @throws {StoreError} CLIENT_MISSING where neither is installed.
   */
  async #open(): Promise<Database> {
    const pg = await load(() => import('pg'), 'pg')
    const postgres = pg ? undefined : await load(() => import('postgres'), 'postgres')
    if (!pg && !postgres) {
      const what =
        'a connection of its own needs a client package: npm install pg (or postgres), or hand in a client'
      throw new StoreError('CLIENT_MISSING', what)
    }
    const { url, prepare } = this
    let database: Database
    if (pg) {
      const pool = new pg.default.Pool({ connectionString: url, ...OF_PG })
      this.#end = () => pool.end()
      database = overPg(pool, prepare)
    } else {
      const sql = postgres!.default(url, OF_POSTGRES)
      this.#end = () => sql.end({ timeout: 1 })
      database = overPostgresJs(sql as PostgresJsClient, prepare)
    }
    if (this.#isClosed) await this.close()
    return database
  }
}

/**
 * Loads the client package `name` by `loading`, an import, and returns its exports; undefined if the package is not installed. If it is
 * installed and fails to load, for example because another package is missing, that error is thrown.
 */
async function load<T>(loading: () => Promise<T>, name: string): Promise<T | undefined> {
  try {
    return await loading()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    if (isMissing && message.includes(`'${name}'`)) return undefined
    throw error
  }
}

/** One connection for each update that is under way, and one to sweep. */
const CONNECTIONS = 5
/**
 * Of the store's own connections. What has no answer for half a minute is given up with its connection: it may lead nowhere. They
 * keep no process alive while they are idle.
 */
const OF_PG = {
  max: CONNECTIONS,
  keepAlive: true,
  connectionTimeoutMillis: 5000,
  query_timeout: 30_000,
  allowExitOnIdle: true,
}
const OF_POSTGRES = {
  max: CONNECTIONS,
  connect_timeout: 5,
  prepare: false,
  fetch_types: false,
  onnotice: (): void => {},
}
