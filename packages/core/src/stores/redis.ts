import { expected, PolicyError, StoreError } from '../errors.js'
import type { Clock } from '../clock.js'
import type { Policy } from '../policy.js'
import type { RedisConnection } from './redis/client.js'
import { connectionOf, isRedisClient } from './redis/clients/detect.js'
import { ownConnection } from './redis/clients/own.js'
import { composeScript } from './redis/compose.js'
import { RedisKeyspace } from './redis/keyspace.js'
import { keyspaceOf } from './redis/redis-key.js'
import { ScriptRunner } from './redis/script-runner.js'
import { Tiers } from './redis/tiers.js'
import type { Places, PlacesOptions } from '../semaphore/places.js'
import { RedisPlaces } from '../semaphore/redis-places.js'
import type { Keyspace, Report, Store } from './store.js'

export interface RedisStoreOptions {
  /** What every key begins with: 1 to 64 characters of printable ASCII without braces. Default 'sluice'. */
  readonly prefix?: string
  /** Microseconds, for tests and simulations alone. Default: Redis's own TIME, so that clocks of callers do not matter. */
  readonly clock?: Clock
}

/**
 * Keeps state in Redis 6.2 or newer, or Valkey, so that a fleet shares its limits: one round trip a decision, atomic, on
 * Redis's own clock. `client` is an ioredis, iovalkey or node-redis client, single, Sentinel or Cluster; or a URL or
 * options, from which the store makes a connection of its own that `close()` ends.
 * @throws {PolicyError} INVALID_OPTION for a bad prefix, clock or client.
 */
export function redisStore(client: unknown, options: RedisStoreOptions = {}): Store {
  return new RedisStore(client, options)
}

class RedisStore implements Store {
  readonly #connection: RedisConnection
  readonly #runner: ScriptRunner
  readonly #tiers = new Tiers()
  readonly #prefix: string
  readonly #clock: Clock | undefined
  readonly #monotonic = performance
  readonly #places = new Set<RedisPlaces>()
  #closed = false

  constructor(client: unknown, { prefix = 'sluice', clock }: RedisStoreOptions) {
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
    this.#prefix = prefix
    this.#clock = clock
    this.#connection = isRedisClient(client) ? connectionOf(client) : ownConnection(client as string | object)
    this.#runner = new ScriptRunner(this.#connection)
  }

  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    if (this.#connection.replays) report({ event: 'warning', ...REPLAYS })
    const shapes = policies.map((policy) => policy.shape)
    return new RedisKeyspace({
      policies,
      keyspace: keyspaceOf(this.#prefix, name, shapes),
      script: composeScript(policies),
      runner: this.#runner,
      tiers: this.#tiers,
      clock: this.#clock ?? REDIS_CLOCK,
      report,
    })
  }

  now(): number {
    if (this.#closed) throw new StoreError('CLOSED', 'the store is closed')
    return this.#clock ? this.#clock() : Math.floor(this.#monotonic.now() * 1000)
  }

  places(options: PlacesOptions): Places {
    const places = new RedisPlaces({
      ...options,
      prefix: this.#prefix,
      runner: this.#runner,
      subscribe: this.#connection.subscribe?.bind(this.#connection),
      clock: this.#clock ?? REDIS_CLOCK,
      closed: () => this.#places.delete(places),
    })
    this.#places.add(places)
    return places
  }

  close(): void {
    this.#closed = true
    for (const places of this.#places) places.close()
    this.#connection.close()
  }
}

/** Tells the script to read Redis's TIME. */
const REDIS_CLOCK: Clock = () => -1

const REPLAYS = {
  code: 'CLIENT_REPLAYS',
  message:
    'the Redis client sends a call again when its reply was lost, so some calls are charged twice: set ' +
    'maxRetriesPerRequest to 0, in a Cluster also retryDelayOnFailover to 0, or in a sentinel of node-redis ' +
    'maxCommandRediscovers to 0',
}
