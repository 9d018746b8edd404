import { type Clock, systemClock } from '../../values/clock.js'
import { CONTRACT, CONTRACT_NUMBER, inCommon } from '../../values/contract.js'
import { Closing, storeClosed } from '../../values/closing.js'
import { read } from '../../values/options.js'
import type { Policy } from '../../algorithms/contract/policy.js'
import type { RedisConnection } from './redis-connection.js'
import { connectionOf, isRedisClient, type RedisClient } from './clients/detect.js'
import { storeError } from './clients/failure.js'
import type { RedisOptions } from './connection/endpoint.js'
import { OwnConnection } from './connection/own.js'
import { redisBoard } from './board.js'
import { EvictionCheck } from './eviction.js'
import { GroupCommit } from './group-commit.js'
import { RedisKeyspace, SmallestLimits } from './keyspace.js'
import { REDIS_STORE, type RedisStoreOptions } from './options.js'
import { RedisPermits } from './permits.js'
import { keyspaceOf } from './redis-key.js'
import { composeScript } from './script/compose.js'
import { ScriptRunner } from './script/script-runner.js'
import { SHAPES } from '../shapes.js'
import type { Penalty } from '../penalty.js'
import type { Board } from '../board.js'
import type { Permits } from '../permits.js'
import type { DenialCacheBounds, Keyspace, Report, Store } from '../store.js'

export type { DenialCacheOptions } from '../denial-cache-options.js'
export type { RedisClient } from './clients/detect.js'
export type { Address, RedisOptions } from './connection/endpoint.js'
export type { RedisStoreOptions } from './options.js'

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
 * URL or options the store makes its own connection, which `close()` ends.
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

class StoreInRedis implements RedisStore {
  readonly denialCache?: DenialCacheBounds
  readonly maxPending: number
  readonly [CONTRACT] = CONTRACT_NUMBER
  readonly #startMs: number
  readonly #client: object
  /** The connection, if the store made it. */
  readonly #own: OwnConnection | undefined
  readonly #connection: RedisConnection
  readonly #runner: ScriptRunner
  readonly #smallestLimits: SmallestLimits
  readonly #groups: Groups
  readonly #permits = new Set<RedisPermits>()
  readonly #eviction: EvictionCheck
  readonly #prefix: string
  /** The clock that scripts read. */
  readonly #clock: Clock
  readonly #now: Clock
  #started: Promise<unknown> | undefined
  /** The latest trouble, and its StoreError. */
  #trouble: { readonly cause: unknown; readonly error: Error } | undefined
  readonly #closing = new Closing()

  constructor(client: RedisClient | string | RedisOptions, options: RedisStoreOptions) {
    const { prefix, clock, denialCache, groupCommit, maxPending, maxShapes, lazy, startTimeout } = read(
      REDIS_STORE,
      options,
      { what: 'redisStore' },
    )
    this.#smallestLimits = new SmallestLimits(maxShapes)
    this.maxPending = maxPending
    this.#startMs = startTimeout
    this.#prefix = prefix
    this.#clock = clock ?? REDIS_CLOCK
    this.#now = clock ?? systemClock()
    if (denialCache) this.denialCache = denialCache
    this.#client = client as object
    if (isRedisClient(client)) this.#connection = connectionOf(client)
    else this.#connection = this.#own = new OwnConnection(client, lazy)
    if (!lazy && this.#own) this.start()?.catch(() => {})
    this.#eviction = new EvictionCheck(this.#connection, `${prefix}:`)
    this.#runner = new ScriptRunner(this.#connection, () => this.#eviction.ask())
    this.#groups = new Groups(this.#runner, groupCommit, maxShapes)
  }

  keyspace(name: string, policies: readonly Policy[], report: Report, penalty?: Penalty): Keyspace {
    this.#warnOfReplays(report)
    this.#eviction.warn(report)
    const shapes = policies.map((policy) => policy.shape)
    const id = penalty ? `${shapes.join()} ${JSON.stringify(penalty)}` : shapes.join()
    const group = (): GroupCommit => this.#groups.get(id, policies, report, penalty)
    group()
    return new RedisKeyspace({
      policies,
      penalty,
      keyspace: keyspaceOf(this.#prefix, name, shapes),
      group,
      smallestLimits: this.#smallestLimits,
      clock: this.#clock,
      report,
    })
  }

  /** Warns once per client, however many stores and limiters use it. */
  #warnOfReplays(report: Report): void {
    const reported = inCommon('reportedClients', () => new WeakSet<object>())
    if (!this.#connection.replays || reported.has(this.#client)) return
    reported.add(this.#client)
    report({ event: 'warning', ...REPLAYS })
  }

  get endpoint(): string {
    return this.#connection.address
  }

  trouble(): Error | undefined {
    const trouble = this.#connection.trouble()
    if (trouble === undefined) return undefined
    // Thousands of calls may fail in one turn.
    if (this.#trouble?.cause !== trouble) this.#trouble = { cause: trouble, error: storeError(trouble) }
    return this.#trouble.error
  }

  start(): Promise<unknown> | undefined {
    if (this.#started) return this.#started
    const connected = this.#connection.connect()
    return connected && (this.#started = Promise.race([connected, this.#startTimeout()]))
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
    return new Promise((resolve) => {
      setTimeout(resolve, this.#startMs).unref()
      this.closed.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  now(): number {
    if (this.#closing.isClosed) throw storeClosed()
    return this.#now()
  }

  permits(name: string, leaseMs: number): Permits {
    const permits = new RedisPermits({
      prefix: this.#prefix,
      name,
      leaseMs,
      runner: this.#runner,
      subscribe: this.#connection.subscribe?.bind(this.#connection),
      clock: this.#clock,
      onClose: () => this.#permits.delete(permits),
    })
    this.#permits.add(permits)
    return permits
  }

  board(name: string): Board {
    return redisBoard(keyspaceOf(this.#prefix, name, ['board']), this.#runner, this.#clock)
  }

  get closed(): AbortSignal {
    return this.#closing.signal
  }

  close(): void {
    this.#closing.close()
    this.#groups.close()
    for (const permits of this.#permits) permits.close()
    this.#connection.close()
  }
}

/** Makes scripts read Redis's TIME. */
const REDIS_CLOCK: Clock = () => -1

const REPLAYS = {
  code: 'CLIENT_REPLAYS',
  message:
    'the Redis client sends a call again when its reply was lost, so some calls are charged twice: set ' +
    'maxRetriesPerRequest to 0, in a Cluster also retryDelayOnFailover to 0, or in a sentinel of node-redis ' +
    'maxCommandRediscovers to 0',
}

/** The scripts of a store by their shapes and penalty, each with its calls. Beyond `most`, the least recently used one is dropped. */
class Groups {
  readonly #byShapes = new Map<string, Held>()
  #uses = 0
  #isClosed = false

  /** Holds at most `most` lists of shapes, each penalty counted, and those with calls in flight. */
  constructor(
    readonly runner: ScriptRunner,
    readonly gathers: boolean,
    readonly most: number,
  ) {}

  /** The group that sends the calls of the script for these shapes and this penalty, which `id` tells apart from others. */
  get(id: string, policies: readonly Policy[], report: Report, penalty?: Penalty): GroupCommit {
    const held = this.#byShapes.get(id)
    if (held) {
      held.used = ++this.#uses
      return held.group
    }
    const script = composeScript(policies, penalty)
    const group = new GroupCommit(this.runner.transport(script), { gathers: this.gathers })
    if (this.#isClosed) group.close()
    this.#byShapes.set(id, { script, group, used: ++this.#uses })
    if (this.#trim()) report({ event: 'warning', ...SHAPES })
    return group
  }

  /** Drops idle scripts while there are too many, but not the one used last. Returns whether one was dropped. */
  #trim(): boolean {
    const surplus = this.#byShapes.size - this.most
    if (surplus <= 0) return false
    const idle = [...this.#byShapes].filter(([, { group, used }]) => used < this.#uses && group.isIdle)
    const dropped = idle.toSorted(([, one], [, other]) => one.used - other.used).slice(0, surplus)
    for (const [id, { script }] of dropped) {
      this.runner.forget(script)
      this.#byShapes.delete(id)
    }
    return dropped.length > 0
  }

  close(): void {
    this.#isClosed = true
    for (const { group } of this.#byShapes.values()) group.close()
  }
}

interface Held {
  readonly script: string
  readonly group: GroupCommit
  used: number
}
