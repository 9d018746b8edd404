import { type Clock, systemClock } from '../../values/clock.js'
import { CONTRACT, CONTRACT_NUMBER, inCommon } from '../../values/contract.js'
import { type Duration, parseDuration } from '../../values/duration.js'
import { expected, PolicyError, StoreError } from '../../values/errors.js'
import type { Policy } from '../../algorithms/contract/policy.js'
import type { RedisConnection } from './redis-connection.js'
import { connectionOf, isRedisClient } from './clients/detect.js'
import { storeError } from './clients/failure.js'
import { type OwnConnection, ownConnection } from './connection/own.js'
import { EvictionCheck } from './eviction.js'
import type { GroupCommit } from './group-commit.js'
import { Groups } from './groups.js'
import { RedisKeyspace } from './keyspace.js'
import { RedisPermits } from './permits.js'
import { keyspaceOf } from './redis-key.js'
import { ScriptRunner } from './script/script-runner.js'
import { SmallestLimits } from './smallest-limits.js'
import { checkMaxShapes, SHAPES } from '../shapes.js'
import type { DenialCacheBounds, Keyspace, Permits, Report, Store } from '../store.js'

export interface RedisStoreOptions {
  /** What every key begins with: 1 to 64 characters of printable ASCII without braces. Default 'sluice'. */
  readonly prefix?: string
  /** Microseconds, for tests and simulations alone. Default: Redis's own TIME, so that clocks of callers do not matter. */
  readonly clock?: Clock
  /**
   * Caches denials, so that repeated calls on an exhausted key need no round trip. A cached denial answers calls of the
   * same cost under the same limits, until the instant that Redis named. Corrections made by other processes (reset,
   * refund, a shorter block) are seen within `maxAge`, default 1 s; `maxKeys` denied keys are cached, default 100,000.
   * false: every call asks Redis.
   */
  readonly denialCache?: DenialCacheOptions | false
  /**
   * Whether calls that are made while others are on their way travel together, as one script call of Redis: many times
   * the decisions a second, and nobody waits for company who would be alone. In a Cluster only calls that ask the same
   * of one key do. Default true; false: each call is sent by itself, at once.
   */
  readonly groupCommit?: boolean
  /**
   * Most calls that wait for Redis's answer in this process, each until its deadline: 1,000 to 1,000,000, default 10,000. At
   * most 1,000 of them are on the wire; the others are dropped unsent where their deadline passes before. Further calls
   * are decided as 'onStoreError' says, at once.
   */
  readonly maxPending?: number
  /**
   * Most lists of shapes whose scripts this process holds, over all limiters of the store; default 1,000. The one used
   * least recently goes. Redis 7.4 and newer let scripts go too; older ones keep each until SCRIPT FLUSH.
   */
  readonly maxShapes?: number
  /** Whether a connection of the store's own is made with the first call instead of at once. Default false. */
  readonly lazy?: boolean
  /**
   * How long the first calls wait for a connection of the store's own, instead of their deadline, which counts from then:
   * up to so long after the store began to connect, 0 to 1 minute; default 1 s.
   */
  readonly startTimeout?: Duration
}

/** Made by `redisStore`. */
export interface RedisStore extends Store {
  /**
   * Resolves once Redis answers; connects if that is not begun.
   * @throws {StoreError} the first failure, or CLOSED.
   */
  ready(): Promise<void>
}

export interface DenialCacheOptions {
  readonly maxAge?: Duration
  readonly maxKeys?: number
}

/**
 * Keeps state in Redis 6.2 or newer, or Valkey, so that a fleet shares its limits: one round trip a decision, atomic, on
 * Redis's own clock. `client` is an ioredis, iovalkey or node-redis client, single, Sentinel or Cluster; or a URL or
 * options, from which the store makes a connection of its own that `close()` ends.
 * @throws {PolicyError} INVALID_OPTION for a bad prefix, clock or client.
 */
export function redisStore(client: unknown, options: RedisStoreOptions = {}): RedisStore {
  return new StoreInRedis(client, options)
}

class StoreInRedis implements RedisStore {
  readonly denialCache?: DenialCacheBounds
  readonly maxPending: number
  readonly [CONTRACT] = CONTRACT_NUMBER
  readonly #startMs: number
  readonly #client: object
  /** The connection, where the store made it. */
  readonly #own: OwnConnection | undefined
  readonly #connection: RedisConnection
  readonly #runner: ScriptRunner
  readonly #smallestLimits: SmallestLimits
  readonly #groups: Groups
  readonly #permits = new Set<RedisPermits>()
  readonly #eviction: EvictionCheck
  readonly #prefix: string
  readonly #clock: Clock | undefined
  readonly #now: Clock
  #started: Promise<unknown> | undefined
  #closed = false

  constructor(client: unknown, options: RedisStoreOptions) {
    const { prefix = 'sluice', clock, denialCache = {}, groupCommit = true, maxPending = 10_000 } = options
    const { lazy = false, startTimeout = '1s' } = options
    if (typeof prefix !== 'string' || !/^[\x21-\x7a|~]{1,64}$/.test(prefix)) {
      const bound = 'prefix must be 1 to 64 characters of printable ASCII without spaces and braces'
      throw expected(PolicyError, 'INVALID_OPTION', bound, prefix)
    }
    if (clock !== undefined && typeof clock !== 'function') {
      throw expected(
        PolicyError,
        'INVALID_OPTION',
        'clock must be a function that returns microseconds',
        clock,
      )
    }
    if (typeof groupCommit !== 'boolean') {
      throw expected(PolicyError, 'INVALID_OPTION', 'groupCommit must be true or false', groupCommit)
    }
    if (!(Number.isInteger(maxPending) && maxPending >= 1000 && maxPending <= 1_000_000)) {
      const bound = 'maxPending must be a whole number from 1000 to 1000000'
      throw expected(PolicyError, 'INVALID_OPTION', bound, maxPending)
    }
    if (typeof lazy !== 'boolean') {
      throw expected(PolicyError, 'INVALID_OPTION', 'lazy must be true or false', lazy)
    }
    const mostShapes = checkMaxShapes(options.maxShapes)
    this.#smallestLimits = new SmallestLimits(mostShapes)
    this.maxPending = maxPending
    this.#startMs = parseDuration(startTimeout, 'startTimeout', {
      least: 0,
      most: 60_000,
      error: PolicyError,
    })
    this.#prefix = prefix
    this.#clock = clock
    this.#now = clock ?? systemClock()
    if (denialCache !== false) this.denialCache = boundsOf(denialCache)
    this.#client = client as object
    if (isRedisClient(client)) this.#connection = connectionOf(client)
    else this.#connection = this.#own = ownConnection(client as string | object, lazy)
    if (!lazy) this.start()?.catch(() => {})
    this.#eviction = new EvictionCheck(this.#connection, `${prefix}:`)
    this.#runner = new ScriptRunner(this.#connection, () => this.#eviction.ask())
    this.#groups = new Groups(this.#runner, { gathers: groupCommit, most: mostShapes })
  }

  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    this.#warnOfReplays(report)
    this.#eviction.warn(report)
    const shapes = policies.map((policy) => policy.shape)
    const script = shapes.join()
    const group = (): GroupCommit => {
      const { size } = this.#groups
      const found = this.#groups.of(script, policies)
      if (this.#groups.size > size && this.#groups.trim()) report({ event: 'warning', ...SHAPES })
      return found
    }
    group()
    return new RedisKeyspace({
      policies,
      keyspace: keyspaceOf(this.#prefix, name, shapes),
      group,
      smallestLimits: this.#smallestLimits,
      clock: this.#clock ?? REDIS_CLOCK,
      report,
    })
  }

  /** Once for each client, whatever the number of its stores and limiters. */
  #warnOfReplays(report: Report): void {
    const reported = inCommon('reportedClients', () => new WeakSet<object>())
    if (!this.#connection.replays || reported.has(this.#client)) return
    reported.add(this.#client)
    report({ event: 'warning', ...REPLAYS })
  }

  start(): Promise<unknown> | undefined {
    return (this.#started ??= this.#own && Promise.race([this.#own.connect(), this.#startTimeout()]))
  }

  async ready(): Promise<void> {
    try {
      if (this.#own) await this.#own.connect()
      else await this.#connection.eval("return ''", [`${this.#prefix}:`], [])
    } catch (error) {
      throw storeError(error)
    }
  }

  #startTimeout(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, this.#startMs).unref())
  }

  now(): number {
    if (this.#closed) throw new StoreError('CLOSED', 'the store is closed')
    return this.#now()
  }

  permits(name: string, leaseMs: number): Permits {
    const permits = new RedisPermits({
      prefix: this.#prefix,
      name,
      leaseMs,
      runner: this.#runner,
      subscribe: this.#connection.subscribe?.bind(this.#connection),
      clock: this.#clock ?? REDIS_CLOCK,
      onClose: () => this.#permits.delete(permits),
    })
    this.#permits.add(permits)
    return permits
  }

  close(): void {
    this.#closed = true
    this.#groups.close()
    for (const permits of this.#permits) permits.close()
    this.#connection.close()
  }
}

function boundsOf(options: DenialCacheOptions): DenialCacheBounds {
  if (typeof options !== 'object' || options === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'denialCache must be { maxAge, maxKeys } or false', options)
  }
  const { maxAge = '1s', maxKeys = 100_000 } = options
  if (!(Number.isInteger(maxKeys) && maxKeys >= 1 && maxKeys <= MOST_DENIED_KEYS)) {
    const bound = `denialCache.maxKeys must be a whole number from 1 to ${MOST_DENIED_KEYS}`
    throw expected(PolicyError, 'INVALID_OPTION', bound, maxKeys)
  }
  const maxAgeMs = parseDuration(maxAge, 'denialCache.maxAge', { most: 3_600_000, error: PolicyError })
  return { maxAge: maxAgeMs * 1000, maxKeys }
}

const MOST_DENIED_KEYS = 8_388_608

/** Tells the script to read Redis's TIME. */
const REDIS_CLOCK: Clock = () => -1

const REPLAYS = {
  code: 'CLIENT_REPLAYS',
  message:
    'the Redis client sends a call again when its reply was lost, so some calls are charged twice: set ' +
    'maxRetriesPerRequest to 0, in a Cluster also retryDelayOnFailover to 0, or in a sentinel of node-redis ' +
    'maxCommandRediscovers to 0',
}
