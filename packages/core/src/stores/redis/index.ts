import { guard } from '../../leases/leased-store.js'
import type { Policy } from '../../algorithms/contract/policy.js'
import { type Clock, machineClock } from '../../values/clock.js'
import { Closing, storeClosed } from '../../values/closing.js'
import { CONTRACT, CONTRACT_NUMBER } from '../../values/contract.js'
import type { Duration } from '../../values/duration.js'
import * as option from '../../values/options.js'
import { warnProcess } from '../../values/process-warning.js'
import { WeakValues } from '../../values/weak-values.js'
import { denialCache, type DenialCacheOptions } from '../denial-cache-options.js'
import type { Penalty } from '../penalty.js'
import { RESERVING, type ReservationSettings } from '../reservations.js'
import type { Permits } from '../permits.js'
import { maxShapes, SHAPES } from '../shapes.js'
import type { Board, DenialCacheBounds, Keyspace, Notice, Records, Report, Store } from '../store.js'
import { redisBoard } from './board.js'
import { connectionOver, type RedisClient } from './clients/detect.js'
import { storeError } from './clients/failure.js'
import type { RedisOptions } from './connection/endpoint.js'
import { OwnConnection } from './connection/own.js'
import { EvictionCheck } from './eviction.js'
import { GroupCommit } from './group-commit.js'
import { hashTags } from './hash-tags.js'
import { keyspaceOf } from './key.js'
import { RedisKeyspace, SmallestLimits } from './keyspace.js'
import { redisPermits } from './permits.js'
import { redisRecords } from './records.js'
import { type RedisConnection, warnOfReplays, watchForReplica } from './redis-connection.js'
import { composeScript, composeTogether } from './script/compose.js'
import { ScriptRunner } from './script/runner.js'
import { RedisTogether } from './together.js'

export type { DenialCacheOptions } from '../denial-cache-options.js'
export type { RedisClient } from './clients/detect.js'
export type { RedisOptions } from './connection/endpoint.js'
export type { Address } from './redis-connection.js'

/** Made by `redisStore`. */
export interface RedisStore extends Store {
  /**
   * Connects unless that has begun, and resolves once Redis answers.
   * @throws {StoreError} the first failure, or CLOSED.
   */
  ready(): Promise<void>
}

/**
 * A store in Redis 6.2 or newer, or in Valkey, so that all processes share their limits. Each decision is atomic, takes one
 * round trip and is made on Redis's own clock.
 *
 * `client` is a client of ioredis, iovalkey or node-redis 5 or later (single, Sentinel or Cluster), or a URL or options. From a
 * URL or options the store makes its own connection, which `close()` ends, and which keeps no process alive while no call waits.
 * @throws {PolicyError} INVALID_OPTION for what is no client, and for a bad option; INVALID_DURATION.
 * @example
 * const limiter = createLimiter({ name: 'api', policies, store: redisStore('redis://localhost:6379') })
 */
export function redisStore(
  client: RedisClient | string | RedisOptions,
  options: RedisStoreOptions = {},
): RedisStore {
  return new StoreInRedis(client, options)
}

export interface RedisStoreOptions {
  /**
   * The beginning of every key: 1 to 64 characters of printable ASCII without spaces and braces.
   * @default 'sluice'
   */
  readonly prefix?: string
  /**
   * Returns microseconds; for tests and simulations only. Default: Redis's own TIME, so that the clocks of processes do not
   * matter.
   */
  readonly clock?: Clock
  /**
   * Caches denials, so that repeated calls on an exhausted key need no round trip. A cached denial answers calls of the
   * same cost under the same limits, until the instant that Redis named. Corrections made by other processes (reset,
   * refund, a shorter block) are seen within `maxAge` (default 1 s); at most `maxKeys` (default 100,000) denied keys are
   * cached. `false` disables the cache.
   */
  readonly denialCache?: DenialCacheOptions | false
  /**
   * Combines calls made while others are in flight into one script call, which raises throughput several times. With few
   * calls in flight, a call is still sent immediately. In a Cluster only identical calls on one key are combined, or those of a
   * group. `false` sends every call on its own.
   * @default true
   */
  readonly groupCommit?: boolean
  /**
   * Divides the keys into so many groups, 2 to 1,024, each with a hash tag of its own, so that a Cluster takes the calls of a group
   * in one script call. Another number is another state. Pays where a process makes many calls at once for each group.
   */
  readonly groups?: number
  /**
   * Most calls of this process that wait for Redis, each until its deadline: 1,000 to 1,000,000. At most 1,000 of them are
   * sent; a call whose deadline passes before it is sent is dropped. Calls beyond the bound are decided by `onStoreError`,
   * immediately.
   * @default 10_000
   */
  readonly maxPending?: number
  /**
   * Most lists of shapes whose scripts this process holds, over all limiters of the store; the least recently used one is
   * dropped. Redis 7.4 and newer drop unused scripts too; older servers keep each until SCRIPT FLUSH.
   * @default 1000
   */
  readonly maxShapes?: number
  /**
   * Whether the store's own connection is made with the first call instead of with the store.
   * @default false
   */
  readonly lazy?: boolean
  /**
   * Longest wait of the first calls for the connection: 0 to 1 minute, counted from when the store's client package is loaded,
   * for a client that was handed in from the first call. The deadline of these calls begins after that wait.
   * A number is in milliseconds.
   * @default '1s'
   */
  readonly startTimeout?: Duration
}

/** Options of `redisStore`. */
const REDIS_STORE = {
  prefix: option.text(`${option.PRINTABLE} without spaces and braces`, /^[\x21-\x7a|~]{1,64}$/, 'sluice'),
  clock: option.clock,
  denialCache,
  groupCommit: option.flag(true),
  groups: option.whole(2, 1024),
  maxPending: option.whole(1000, 1_000_000, 10_000),
  maxShapes,
  lazy: option.flag(false),
  startTimeout: option.duration(0, '1m', '1s'),
} satisfies option.DeclarationOf<RedisStoreOptions>

class StoreInRedis implements RedisStore {
  readonly denialCache?: DenialCacheBounds
  readonly maxPending: number
  readonly keepsTime: boolean
  readonly maxShapes: number
  readonly guard = guard
  get [CONTRACT](): number {
    return CONTRACT_NUMBER
  }
  readonly #settings: option.Settings<typeof REDIS_STORE>
  readonly #client: object
  /** The connection, if the store made it. */
  readonly #own: OwnConnection | undefined
  readonly #connection: RedisConnection
  readonly #runner: ScriptRunner
  readonly #tagOf: ((callerKey: string) => string) | undefined
  /** The smallest limits that were used, by the beginning of the keys, as long as a keyspace holds them. */
  readonly #smallestLimits = new WeakValues<SmallestLimits>()
  readonly #groups: Groups
  readonly #together: RedisTogether
  readonly #permits = new Set<Permits>()
  readonly #eviction: EvictionCheck
  /** Gets warnings about the client. It belongs to the limiter that was made last. */
  #report: Report = warnOfClient
  readonly #now: Clock
  #started: { readonly ended: Promise<unknown> | undefined } | undefined
  /** The latest trouble, and its StoreError. */
  #trouble: { readonly cause: unknown; readonly error: Error } | undefined
  readonly #closing = new Closing()

  /**
   * Uses the client that was handed in, or makes a connection of its own, which begins to connect unless the store is `lazy`. A client
   * that was handed in is watched, so that it is warned of if its server has become a replica. `#runner` runs scripts in Redis; after
   * the first reply, `#eviction` asks Redis whether it evicts keys. `#groups` sends the calls of each script together. `#together`
   * decides calls on several keys, by a script that is composed when the first such call comes. `#tagOf` returns the hash tag by
   * which a Cluster keeps keys together. `keepsTime` says that the clock is not given, as by a test.
   */
  constructor(client: RedisClient | string | RedisOptions, options: RedisStoreOptions) {
    this.#settings = option.readOptions(REDIS_STORE, options, { what: 'redisStore' })
    const { prefix, clock, denialCache, groupCommit, groups, maxPending, maxShapes, lazy } = this.#settings
    this.#tagOf = groups ? hashTags(groups) : undefined
    this.maxPending = maxPending
    this.maxShapes = maxShapes
    this.keepsTime = clock === undefined
    this.#now = clock ?? machineClock()
    if (denialCache) this.denialCache = denialCache
    this.#client = client as object
    this.#connection = connectionOver(client) ?? (this.#own = new OwnConnection(client))
    if (!lazy && this.#own) this.start()?.catch(() => {})
    this.#eviction = new EvictionCheck(this.#connection, Buffer.from(`${prefix}:`))
    const onReadonly = this.#own
      ? undefined
      : watchForReplica(client as object, (notice) => this.#report(notice))
    this.#runner = new ScriptRunner(this.#connection, () => this.#eviction.ask(), onReadonly)
    this.#groups = new Groups(this.#runner, groupCommit, maxShapes)
    this.#together = new RedisTogether((id, lists, ofFirst) =>
      this.#groups.get(id, () => composeTogether(lists), ofFirst),
    )
  }

  /**
   * Opens the state of the limiter `name` under one list of policies. Its script is composed now, so that a mistake in it is
   * found at set-up. Lists of equal shapes (algorithm, window and whatever else state depends on) and equal penalty share a script.
   * Lists of one name and equal shapes share state, which Redis keeps until it would be full under the smallest of their limits.
   * Where a call may have one key only, as in a Cluster, `together` is undefined. `report` gets warnings.
   */
  keyspace(
    name: string,
    policies: readonly Policy[],
    report: Report,
    penalty?: Penalty,
    reservations?: ReservationSettings,
  ): Keyspace {
    this.#report = report
    warnOfReplays(this.#client, this.#connection, report)
    this.#eviction.warn(report)
    const shapes = policies.map((policy) => policy.shape)
    if (reservations) shapes.push(RESERVING)
    const listId = penalty ? `${shapes.join()} ${JSON.stringify(penalty)}` : shapes.join()
    const compose = (): string => composeScript(policies, penalty, reservations !== undefined)
    const keyspace = keyspaceOf(this.#settings.prefix, name, shapes)
    return new RedisKeyspace({
      listId,
      together: () => (this.#runner.takesManyKeys ? this.#together : undefined),
      policies,
      penalty,
      max: reservations?.max,
      keyspace,
      group: () => this.#groups.get(listId, compose, report),
      smallestLimits: this.#smallestLimits.get(keyspace, () => new SmallestLimits()),
      tagOf: this.#tagOf,
      clock: this.#settings.clock,
      report,
    })
  }

  get endpoint(): string {
    return this.#connection.address
  }

  /** Returns why the client is not connected, as a StoreError; undefined while it is. */
  trouble(): Error | undefined {
    const trouble = this.#connection.trouble()
    if (trouble === undefined) return undefined
    // Converted once, as thousands of calls may fail for it in one turn.
    if (this.#trouble?.cause !== trouble) this.#trouble = { cause: trouble, error: storeError(trouble) }
    return this.#trouble.error
  }

  /**
   * Connects before the first call. The promise settles when the connection is made, has failed, or has taken `startTimeout`; the
   * deadlines of the first calls count from then. Undefined if there was nothing to wait for when this was first called.
   */
  start(): Promise<unknown> | undefined {
    if (this.#started) return this.#started.ended
    const connected = this.#connection.connect()
    this.#started = { ended: connected && Promise.race([connected, this.#startTimeout()]) }
    return this.#started.ended
  }

  /**
   * Connects unless that has begun, and resolves once Redis answers. A client that was handed in runs a script that does nothing.
   * @throws {StoreError} the first failure.
   */
  async ready(): Promise<void> {
    try {
      if (this.#own) await this.#own.connect()
      else await this.#connection.eval("return ''", [`${this.#settings.prefix}:`], [])
    } catch (error) {
      // A client that was handed in fails calls by its own bound on repetitions, and reports apart why it is not connected.
      throw (this.#own ? undefined : this.trouble()) ?? storeError(error)
    }
  }

  /**
   * Resolves when the first calls have waited for the connection for `startTimeout` milliseconds, or when the store closes. If the
   * store makes its own connection, the time counts from when the client package is loaded (`begin`).
   */
  #startTimeout(): Promise<void> {
    return new Promise((resolve) => {
      const begin = (): unknown => setTimeout(resolve, this.#settings.startTimeout).unref()
      // The time counts once the package is loaded: loading keeps this process busy, and says nothing about Redis.
      if (this.#own) this.#own.open().then(begin, begin)
      else begin()
      this.closed.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /**
   * Returns microseconds on a clock of this process, by which limiters measure waits; Redis decides by its own.
   * @throws {StoreError} CLOSED.
   */
  now(): number {
    if (this.#closing.isClosed) throw storeClosed()
    return this.#now()
  }

  /**
   * Makes what asks Redis for the permits of the semaphore `name`. A permit that is not renewed for `leaseMs` milliseconds is free again.
   * The store keeps what it has made in `#permits` until that is closed (`ended`), to close it with itself.
   */
  permits(name: string, leaseMs: number): Permits {
    const keyspace = keyspaceOf(this.#settings.prefix, name, ['semaphore'])
    const ended = (closed: Permits): unknown => this.#permits.delete(closed)
    const permits = redisPermits(keyspace, leaseMs, this.#runner, this.#settings.clock, ended)
    this.#permits.add(permits)
    return permits
  }

  /** The board of this name: texts that processes leave for each other in Redis, each until it expires. */
  board(name: string): Board {
    const { prefix, clock } = this.#settings
    return redisBoard(keyspaceOf(prefix, name, ['board']), this.#runner, clock)
  }

  /** The records of operators about single keys, for all limiters of this prefix. No limiter has an empty name. */
  records(): Records {
    const { prefix, clock } = this.#settings
    return redisRecords(keyspaceOf(prefix, '', ['records']), this.#runner, clock)
  }

  get startTimeout(): number {
    return this.#settings.startTimeout
  }

  get closed(): AbortSignal {
    return this.#closing.signal
  }

  /** Closes the store and its permits, rejects waiting and later calls, and ends the connection if the store made it. */
  close(): void {
    this.#closing.close()
    this.#groups.close()
    for (const permits of this.#permits) permits.close()
    this.#connection.close()
  }
}

/** Writes a warning about the client to the process, for a store without limiters, such as one of semaphores. */
function warnOfClient(notice: Notice): void {
  if (notice.event === 'warning') warnProcess(notice.code, notice.message)
}

/** The groups of a store: each has a script, which it sends the calls of. They are found by the id of the script. */
class Groups {
  readonly #byId = new Map<string, GroupCommit>()
  #isClosed = false

  /**
   * Makes the groups of a store's calls, one for each script, none yet. Each will send by `runner`, and combine calls if
   * `gathers`. Idle groups beyond `most` are dropped.
   */
  constructor(
    readonly runner: ScriptRunner,
    readonly gathers: boolean,
    readonly most: number,
  ) {}

  /**
   * Returns the group of calls with this id. If there is none, makes one, with the script that `compose` returns. If idle groups are
   * dropped for it, as there are too many, `report` gets a warning.
   */
  get(id: string, compose: () => string, report: Report): GroupCommit {
    const held = this.#byId.get(id)
    if (held) return held
    const group = new GroupCommit(this.runner, compose(), { gathers: this.gathers })
    if (this.#isClosed) group.close()
    this.#byId.set(id, group)
    if (this.#dropIdle(group)) report({ event: 'warning', ...SHAPES })
    return group
  }

  /**
   * Drops groups beyond `most`, the least recently used first, but neither `added`, the newest, nor any with calls in flight. Their
   * scripts are forgotten with them. Returns whether any was dropped.
   */
  #dropIdle(added: GroupCommit): boolean {
    const surplus = this.#byId.size - this.most
    if (surplus <= 0) return false
    const idle = [...this.#byId].filter(([, group]) => group !== added && group.isIdle)
    const dropped = idle.toSorted(([, a], [, b]) => a.lastUse - b.lastUse).slice(0, surplus)
    for (const [id, group] of dropped) {
      this.runner.forget(group.script!)
      group.drop()
      this.#byId.delete(id)
    }
    return dropped.length > 0
  }

  /** Rejects all calls that wait to be sent, and all later ones. */
  close(): void {
    this.#isClosed = true
    for (const group of this.#byId.values()) group.close()
  }
}
