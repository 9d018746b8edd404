import type { Duration } from '../../../values/duration.js'
import { PolicyError } from '../../../values/errors.js'
import * as option from '../../../values/options.js'
import type { Address } from '../redis-connection.js'
import { CLIENTS, described, isRecord } from '../clients/detect.js'

/**
 * Where Redis is, and the credentials: one server, by `url`, by `host` and `port` or by `path`; the master that `sentinels`
 * know as `name`; or a `cluster`. For other settings hand in a client.
 */
export interface RedisOptions {
  /** `redis[s]://[user:password@]host[:port][/db]`. What other options say comes before it. */
  readonly url?: string
  /**
   * Beside a `port` it may be left out.
   * @default '127.0.0.1'
   */
  readonly host?: string
  /** @default 6379 */
  readonly port?: number
  /** A Unix socket. */
  readonly path?: string
  readonly username?: string
  readonly password?: string
  /**
   * A Cluster has no other.
   * @default 0
   */
  readonly db?: number
  /** As for Node's `tls.connect`; `{}` for TLS with its defaults. */
  readonly tls?: object
  /** Sentinels that know the master; requires `name`. */
  readonly sentinels?: readonly Address[]
  /** The Sentinels' name of the master. */
  readonly name?: string
  /** Some nodes of a Cluster; the others are discovered. */
  readonly cluster?: readonly Address[]
  /**
   * Longest time to make a connection, in milliseconds if it is a number: up to 1 hour.
   * @default '1s'
   */
  readonly connectTimeout?: Duration
  /** Silence after which TCP asks whether the other side is there, in milliseconds if it is a number. */
  readonly keepAlive?: Duration
  /** Of the address that a host name stands for: 4, 6, or 0 for either. */
  readonly family?: 0 | 4 | 6
  /** As `CLIENT LIST` shows the connection. It needs the permission `client|setname`. */
  readonly connectionName?: string
}

/** Options as the openers of connections take them: checkedOptions, the URL taken apart, durations in milliseconds. */
export type Endpoint = Partial<option.Settings<typeof REDIS>>

/**
 * Reads where Redis is and how to connect from what was given to `redisStore`: a URL
 * `redis[s]://[user:password@]host[:port][/db][?option=value]`, or options. What other options say comes before the URL.
 * @throws {PolicyError} INVALID_OPTION for what is neither, with what to hand in; INVALID_DURATION. The message never
 * contains the URL, which may hold a password, nor the password.
 */
export function endpointOf(given: unknown): Endpoint {
  const { url, ...others } = typeof given === 'string' ? { url: given } : checkedOptions(given)
  const all = { ...(url !== undefined && fromUrl(url)), ...others }
  return option.readOptions(REDIS, all, ABOUT)
}

const name = option.text('a text that is not empty', /./s)
const addresses = option.custom<readonly Address[]>('a list of { host, port }, at least one', (value) =>
  Array.isArray(value) && value.length > 0 && value.every(isAddress) ? value : option.REFUSED,
)
const port = option.whole(1, 65_535)

const REDIS = {
  url: name,
  host: name,
  port,
  path: name,
  username: option.text('a text', /^/),
  password: option.checkedBy((value) => {
    if (typeof value === 'string') return value
    throw invalid(`password must be a text, got a ${typeof value}`)
  }),
  db: option.whole(0, 2 ** 31 - 1),
  tls: option.custom<object>('an object, {} for TLS with its defaults', (value) =>
    isRecord(value) ? value : option.REFUSED,
  ),
  sentinels: addresses,
  name,
  cluster: addresses,
  connectTimeout: option.duration('1ms', '1h', '1s'),
  keepAlive: option.duration(0, '1h'),
  family: option.oneOf([0, 4, 6]),
  connectionName: name,
} satisfies option.DeclarationOf<RedisOptions>

/**
 * Returns the given options, once it has checked their names, and that they name exactly one place where Redis is: `url`, `path`,
 * `cluster`, `sentinels`, or a host or port. Their values are checked later. An object of a class that has `on` is no options but a
 * client of an unknown kind.
 * @throws {PolicyError} INVALID_OPTION for such a client, for several places or none, and for an unknown option.
 */
function checkedOptions(given: unknown): RedisOptions {
  if (!isRecord(given)) throw notRedis(given)
  const has = (option: string): boolean => Object.hasOwn(given, option) && given[option] !== undefined
  const places = ['url', 'path', 'cluster', 'sentinels', has('host') ? 'host' : 'port'].filter(has)
  if ((places.length === 0 || 'on' in given) && !isPlain(given)) throw notRedis(given)
  option.checkNames(REDIS, given, ABOUT)
  if (places.length === 0) throw notRedis(given)
  if (places.length > 1) throw invalid(`${places.join(' and ')} exclude each other: leave one of them out`)
  if (has('name') !== has('sentinels')) {
    throw invalid('sentinels and name belong together: name is what the sentinels call the master')
  }
  return given
}

/** Whether an object was written as a literal, and not made by a class, as clients are: it has Object's prototype, or none. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/**
 * Makes the error about a value that is neither a client nor says where Redis is. It describes the value without showing what it
 * holds, which may be a password.
 */
function notRedis(given: unknown): Error {
  const place = 'options that say where Redis is (url, host, port, path, sentinels or cluster)'
  return invalid(`redisStore takes ${CLIENTS}, a redis:// URL, or ${place}, got ${described(given)}`)
}

function invalid(message: string): PolicyError {
  return new PolicyError('INVALID_OPTION', message)
}

const ABOUT: option.About = {
  what: 'redisStore',
  advice:
    'for other settings hand in a client: redisStore(new Redis({ host, port, maxRetriesPerRequest: 0 }))',
}

/**
 * Returns the options that a URL `redis[s]://[user:password@]host[:port][/db][?option=value]` stands for; rediss means TLS.
 * @throws {PolicyError} INVALID_OPTION, without the URL or the part that is wrong, as they may hold a password.
 */
function fromUrl(given: string): RedisOptions {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (!url || (url.protocol !== 'redis:' && url.protocol !== 'rediss:')) {
    const what = url ? url.protocol : 'an invalid URL'
    throw invalid(`a Redis URL must begin with redis:// or rediss://, got ${what}`)
  }
  const db = url.pathname.slice(1)
  if (!/^\d*$/.test(db)) {
    // Not shown: a slash inside of a password would begin the path.
    throw invalid('the path of a Redis URL must be the number of a database')
  }
  return {
    ...Object.fromEntries([...url.searchParams].map(([option, value]) => [option, parameter(option, value)])),
    ...(url.hostname !== '' && { host: url.hostname.replace(/^\[(.*)\]$/, '$1') }),
    ...(url.port !== '' && { port: Number(url.port) }),
    ...(url.username !== '' && { username: decoded(url.username) }),
    ...(url.password !== '' && { password: decoded(url.password) }),
    ...(db !== '' && { db: Number(db) }),
    ...(url.protocol === 'rediss:' && { tls: {} }),
  }
}

/**
 * Returns a part of a URL without its percent-encoding.
 * @throws {PolicyError} INVALID_OPTION where the encoding is broken, without the part, which may be a password.
 */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw invalid('the user and the password of a Redis URL must be percent-encoded')
  }
}

/**
 * Returns the value of an option in a URL's query, as a number where it is all digits.
 * @throws {PolicyError} INVALID_OPTION for an unknown name, which is not shown: a question mark inside a password would begin the
 * query.
 */
function parameter(option: string, value: string): unknown {
  if (!IN_URLS.includes(option)) throw invalid(`the options of a Redis URL are ${IN_URLS.join(', ')}`)
  return /^\d+$/.test(value) && option !== 'connectionName' ? Number(value) : value
}

const IN_URLS: readonly string[] = ['connectTimeout', 'keepAlive', 'family', 'connectionName']

/** Whether a value is an object with a host, as text, and a valid port. */
function isAddress(value: unknown): value is Address {
  if (!isRecord(value) || typeof value['host'] !== 'string') return false
  return port.parse(value['port'], 'port') !== option.REFUSED
}
