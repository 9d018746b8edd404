import {
  clock,
  Closing,
  CONTRACT,
  CONTRACT_NUMBER,
  type DeclarationOf,
  denialCache,
  type DenialCacheOptions,
  duration,
  flag,
  gatheringOf,
  guard,
  sharedInProcess,
  readOptions,
  storeClosed,
  machineClock,
  whole,
} from '@sluice/core/internal'
import {
  type Board,
  type Clock,
  type DenialCacheBounds,
  type Duration,
  type Keyspace,
  keyspaceOver,
  type Permits,
  type Records,
  type Report,
  type Store,
  type UpdateMany,
} from '@sluice/core/store'
import { type Database, databaseOf, type PgPool, type PostgresJsClient } from './database.js'
import { PostgresPermits, postgresBoard } from './permits.js'
import { postgresRecords } from './records.js'
import { StateRows } from './rows.js'
import { type PostgresTableOptions, TABLE } from './schema.js'
import { Sweep } from './sweep.js'

export type { DenialCacheOptions } from '@sluice/core/internal'
export type { PgPool, PostgresJsClient } from './database.js'
export { postgresSchema, type PostgresTableOptions } from './schema.js'

export interface PostgresStoreOptions extends PostgresTableOptions {
  /**
   * Whether the store makes its table where there is none. Without it, put what `postgresSchema` returns into a migration.
   * @default true
   */
  readonly createTable?: boolean
  /**
   * Whether statements are prepared by name, which saves Postgres their planning. Not through PgBouncer in transaction mode.
   * @default false
   */
  readonly prepare?: boolean
  /**
   * Returns microseconds; for tests and simulations only. Default: the clock of Postgres, so that the clocks of processes do
   * not matter.
   */
  readonly clock?: Clock
  /**
   * Caches denials, so that repeated calls on an exhausted key need no round trip. Corrections made by other processes (reset,
   * refund, a shorter block) are seen within `maxAge`. `false` disables the cache.
   */
  readonly denialCache?: DenialCacheOptions | false
  /**
   * Most calls of this process that wait for Postgres, each until its deadline: 1,000 to 1,000,000. Those beyond are decided
   * by `onStoreError`, immediately.
   * @default 10_000
   */
  readonly maxPending?: number
  /**
   * Longest wait of the first calls for the connection and the table: 0 to 1 minute. Their deadlines begin after that wait. A
   * number is in milliseconds.
   * @default '1s'
   */
  readonly startTimeout?: Duration
}

/** Options of `postgresStore`. */
const POSTGRES_STORE = {
  ...TABLE,
  createTable: flag(true),
  prepare: flag(false),
  clock,
  denialCache,
  maxPending: whole(1000, 1_000_000, 10_000),
  startTimeout: duration(0, '1m', '1s'),
} satisfies DeclarationOf<PostgresStoreOptions>

/** Made by `postgresStore`. */
export interface PostgresStore extends Store {
  /**
   * Resolves once Postgres answers and the table is there.
   * @throws {StoreError} STORE_READONLY on a standby, STORE_ERROR where the table is missing or another, or what the connection
   * failed with.
   */
  ready(): Promise<void>
  close(): Promise<void>
}

/**
 * A store in Postgres 15 or newer, so that all processes share their limits. Decisions are made in the process, exactly, on
 * Postgres's own clock: two short statements for all calls that come together, and no lock or transaction in between.
 *
 * `client` is a Pool of `pg`, a client of `postgres`, or a URL. From a URL the store makes its own connections, at most five, which
 * `close()` ends. A single connection is refused, as what it decides would be taken back with a transaction of the application.
 *
 * Its table is unlogged unless `logged` is set: a crash or a failover of Postgres empties it.
 * @throws {PolicyError} INVALID_OPTION for what is neither a pool nor a URL, and for a bad option; INVALID_DURATION.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * import { postgresStore } from '@sluice/postgres'
 * const store = postgresStore('postgres://localhost/app')
 * const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 100, window: '1m' })], store })
 */
export function postgresStore(
  client: PgPool | PostgresJsClient | string,
  options: PostgresStoreOptions = {},
): PostgresStore {
  return new StoreInPostgres(client, options)
}

class StoreInPostgres implements PostgresStore {
  readonly [CONTRACT] = CONTRACT_NUMBER
  readonly guard = guard
  readonly denialCache?: DenialCacheBounds
  readonly endpoint?: string
  readonly maxPending: number
  readonly keepsTime: boolean
  readonly forgets: boolean
  readonly #client: object | string
  readonly #database: Database
  readonly #rows: StateRows
  readonly #sweep: Sweep
  readonly #updates: { readonly updateMany: UpdateMany }
  /** Longest wait of the first calls, in milliseconds. */
  readonly startTimeout: number
  readonly #now: Clock
  readonly #closing = new Closing()
  #started: Promise<unknown> | undefined

  /**
   * Reads the options and takes over the client, or the URL. It does not connect yet: the first call does. `#database` runs statements,
   * `#rows` reads and writes the rows of the table, one for each key, and `#sweep` deletes those that have expired. Keyspaces, permits
   * and boards all change their states by `#updates`, so that calls that come together share a statement. `keepsTime` says that no
   * clock is given, as by a test; `forgets` that a crash empties the table, as it is not logged.
   */
  constructor(client: PgPool | PostgresJsClient | string, options: PostgresStoreOptions) {
    const settings = readOptions(POSTGRES_STORE, options, { what: 'postgresStore' })
    this.maxPending = settings.maxPending
    if (settings.denialCache) this.denialCache = settings.denialCache
    this.startTimeout = settings.startTimeout
    this.#now = settings.clock ?? machineClock()
    this.keepsTime = settings.clock === undefined
    this.forgets = !settings.logged
    this.#client = client
    this.#database = databaseOf(client, settings.prepare)
    if (this.#database.endpoint) this.endpoint = this.#database.endpoint
    this.#rows = new StateRows(this.#database, settings)
    this.#sweep = new Sweep(this.#database, this.#rows)
    this.#updates = { updateMany: (...update) => this.#update(...update) }
  }

  /**
   * Opens the state of the limiter `name` under one list of policies. Decisions are made in this process, on the bytes of a key's
   * state, which a row of the table keeps. `report` gets warnings.
   */
  keyspace(...limiter: Parameters<Store['keyspace']>): Keyspace {
    const [, , report] = limiter
    this.#warnOfPreparing(report)
    this.#rows.report ??= report
    return keyspaceOver(this.#updates, ...limiter)
  }

  permits(name: string, leaseMs: number): Permits {
    return new PostgresPermits(gatheringOf(this.#updates), name, leaseMs)
  }

  board(name: string): Board {
    return postgresBoard(gatheringOf(this.#updates), name)
  }

  /** The records of operators about single keys, for all limiters of the table. Each write needs an open store, and the sweep. */
  records(): Records {
    const written = (): void => {
      this.now() // throws once the store is closed
      this.#sweep.begin()
    }
    return postgresRecords(this.#rows, written)
  }

  /**
   * Begins to set the table up, with the first call. The promise resolves when that is done or has failed, or after
   * `startTimeout`; the deadlines of the first calls count from then.
   */
  start(): Promise<unknown> {
    this.#started ??= Promise.race([this.#rows.setUp().catch(() => {}), this.#startTimedOut()])
    return this.#started
  }

  /**
   * Resolves when the table is set up, and rejects with the reason why it is not. It also rejects if the store is closed, as
   * `now` throws then.
   */
  async ready(): Promise<void> {
    this.now()
    await this.#rows.setUp()
  }

  /**
   * Returns microseconds on a clock of this process, by which limiters measure waits; decisions use the clock of Postgres.
   * @throws {StoreError} CLOSED.
   */
  now(): number {
    if (this.#closing.isClosed) throw storeClosed()
    return this.#now()
  }

  get closed(): AbortSignal {
    return this.#closing.signal
  }

  /**
   * Closes the store: later calls are refused, the sweep that deletes expired rows ends, and so do the connections that the store
   * made. A client that was handed in stays open.
   */
  async close(): Promise<void> {
    this.#closing.close()
    this.#sweep.end()
    await this.#database.close()
  }

  /**
   * Changes rows in one update, unless the store is closed: then `now` throws. Returns the ids whose changes do not count, mostly
   * because another process was faster to write: calls on them are decided again. Writes leave rows that expire, so the first one
   * also starts the sweep that deletes them.
   */
  readonly #update: UpdateMany = async (...update) => {
    this.now()
    const lost = await this.#rows.updateMany(...update)
    this.#sweep.begin()
    return lost
  }

  /** Resolves after `startTimeout` milliseconds, or when the store is closed. The timer keeps no process alive. */
  #startTimedOut(): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, this.startTimeout).unref()
      this.closed.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /**
   * Warns that the client that was handed in prepares statements by itself, which PgBouncer does not allow in transaction mode.
   * Once per client, however many stores and limiters use it.
   */
  #warnOfPreparing(report: Report): void {
    if (!this.#database.prepares || typeof this.#client === 'string') return
    const reported = sharedInProcess('preparingClients', () => new WeakSet<object>())
    if (reported.has(this.#client)) return
    reported.add(this.#client)
    report({ event: 'warning', ...PREPARES })
  }
}

const PREPARES = {
  code: 'POSTGRES_PREPARES',
  message:
    'this client of postgres prepares its statements, which fail or hang through PgBouncer in transaction mode: make it ' +
    'with { prepare: false } there',
}
