import { expected, PolicyError } from '../../../values/errors.js'

/**
 * The address of Redis and the credentials: of one server, of the master that Sentinels know as `name`, or of a Cluster.
 * Any other connection option of ioredis may be added, except that the store sets those for retries, queues and
 * reconnection itself.
 */
export interface RedisOptions {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 6379. */
  readonly port?: number
  /** A Unix socket in place of `host` and `port`. */
  readonly path?: string
  readonly username?: string
  readonly password?: string
  /** Default 0; a Cluster has no other. */
  readonly db?: number
  /** As for Node's `tls.connect`; `{}` for TLS with its defaults. */
  readonly tls?: object
  /** Sentinels that know the master; requires `name`. */
  readonly sentinels?: readonly Address[]
  readonly name?: string
  /** Some nodes of a Cluster; the others are discovered. */
  readonly cluster?: readonly Address[]
  readonly [option: string]: unknown
}

export interface Address {
  readonly host: string
  readonly port: number
}

/**
 * Parses a URL `redis[s]://[user:password@]host[:port][/db][?option=value]`, or checks options.
 * @throws {PolicyError} INVALID_OPTION for a malformed URL or options. The message never contains the URL, which may hold
 * a password.
 */
export function redisOptions(given: string | object): RedisOptions {
  if (typeof given === 'string') return fromUrl(given)
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid(`a Redis connection must be a client, a redis:// URL or options`, given)
  }
  const options: RedisOptions = { ...given }
  const { cluster, sentinels, name } = options
  if (cluster !== undefined && !isAddresses(cluster)) {
    throw invalid('cluster must be a list of { host, port }, at least one', cluster)
  }
  if (sentinels !== undefined && !isAddresses(sentinels)) {
    throw invalid('sentinels must be a list of { host, port }, at least one', sentinels)
  }
  if (sentinels && (typeof name !== 'string' || name === '')) {
    throw invalid('name must be what the sentinels call the master', name)
  }
  return options
}

function fromUrl(text: string): RedisOptions {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || (url.protocol !== 'redis:' && url.protocol !== 'rediss:')) {
    const what = url ? url.protocol : 'an invalid URL'
    throw new PolicyError('INVALID_OPTION', `a Redis URL must begin with redis:// or rediss://, got ${what}`)
  }
  const db = url.pathname.slice(1)
  if (!/^\d*$/.test(db)) {
    // A slash in a password begins the path.
    throw new PolicyError('INVALID_OPTION', 'the path of a Redis URL must be the number of a database')
  }
  return {
    ...Object.fromEntries([...url.searchParams].map(([name, value]) => [name, plain(value)])),
    ...(url.hostname !== '' && { host: url.hostname.replace(/^\[(.*)\]$/, '$1') }),
    ...(url.port !== '' && { port: Number(url.port) }),
    ...(url.username !== '' && { username: decoded(url.username) }),
    ...(url.password !== '' && { password: decoded(url.password) }),
    ...(db !== '' && { db: Number(db) }),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new PolicyError(
      'INVALID_OPTION',
      'the user and the password of a Redis URL must be percent-encoded',
    )
  }
}

function plain(value: string): string | number {
  return /^\d+$/.test(value) ? Number(value) : value
}

function isAddresses(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item?.port === 'number')
}

function invalid(what: string, value: unknown): Error {
  return expected(PolicyError, 'INVALID_OPTION', what, value)
}
