import { type Duration, parseDuration } from '../../../values/duration.js'
import { expected, PolicyError } from '../../../values/errors.js'
import { each, noSuchOption, type Replacements } from '../../../values/option-names.js'
import { CLIENTS, described, isRecord } from '../clients/detect.js'

/**
 * Where Redis is, and the credentials: one server, by `url`, by `host` and `port` or by `path`; the master that `sentinels`
 * know as `name`; or a `cluster`. Whoever needs other settings hands in a client.
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
  /** What the Sentinels call the master. */
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

export interface Address {
  readonly host: string
  readonly port: number
}

/** Options as the openers of connections take them: checked, the URL taken apart, durations in milliseconds. */
export interface Endpoint extends Omit<RedisOptions, 'url' | 'connectTimeout' | 'keepAlive'> {
  readonly connectTimeout?: number
  readonly keepAlive?: number
}

/**
 * Parses a URL `redis[s]://[user:password@]host[:port][/db][?option=value]`, or checks options.
 * @throws {PolicyError} INVALID_OPTION for what is neither, with what to hand in; INVALID_DURATION. The message never contains
 * the URL, which may hold a password, nor the password.
 */
export function endpointOf(given: unknown): Endpoint {
  const options: RedisOptions = typeof given === 'string' ? { url: given } : checked(given)
  const { url, ...others } = options
  const all: RedisOptions = { ...(url !== undefined && fromUrl(url)), ...others }
  const { connectTimeout, keepAlive, ...rest } = all
  return {
    ...rest,
    ...(connectTimeout !== undefined && {
      connectTimeout: milliseconds(connectTimeout, 'connectTimeout', 1),
    }),
    ...(keepAlive !== undefined && { keepAlive: milliseconds(keepAlive, 'keepAlive', 0) }),
  }
}

function milliseconds(value: Duration, name: string, least: number): number {
  return parseDuration(value, name, { least, most: 3_600_000, error: PolicyError })
}

/** What an option must be, and whether a value is. */
type Rule = readonly [what: string, holds: (value: unknown) => boolean]

const TEXT: Rule = ['a text', (value) => typeof value === 'string']
const NAME: Rule = ['a text that is not empty', (value) => typeof value === 'string' && value !== '']
const ADDRESSES: Rule = ['a list of { host, port }, at least one', isAddresses]
/** Checked where it is read. */
const DURATION: Rule = ['a duration', () => true]

const OPTIONS: Readonly<Record<keyof RedisOptions, Rule>> = {
  url: NAME,
  host: NAME,
  port: ['a whole number from 1 to 65535', (value) => isWhole(value, 1, 65_535)],
  path: NAME,
  username: TEXT,
  password: TEXT,
  db: ['a whole number from 0', (value) => isWhole(value, 0, Infinity)],
  tls: ['an object, {} for TLS with its defaults', (value) => typeof value === 'object' && value !== null],
  sentinels: ADDRESSES,
  name: NAME,
  cluster: ADDRESSES,
  connectTimeout: DURATION,
  keepAlive: DURATION,
  family: ['4, 6, or 0 for either', (value) => value === 0 || value === 4 || value === 6],
  connectionName: NAME,
}

function checked(given: unknown): RedisOptions {
  if (!isRecord(given)) throw notRedis(given)
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const has = (name: string): boolean => Object.hasOwn(options, name)
  const places = ['url', 'path', 'cluster', 'sentinels', has('host') ? 'host' : 'port'].filter(has)
  if (places.length === 0 && !isPlain(given)) throw notRedis(given)
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(OPTIONS, name)) throw noSuchOption(name, { [name]: OTHERWISE, ...REPLACEMENTS })
    const [what, holds] = OPTIONS[name as keyof RedisOptions]
    if (!holds(value)) throw invalid(`${name} must be ${what}`, name === 'password' ? typeof value : value)
  }
  if (places.length === 0) throw notRedis(given)
  if (places.length > 1) {
    throw new PolicyError(
      'INVALID_OPTION',
      `${places.join(' and ')} exclude each other: leave one of them out`,
    )
  }
  if (has('name') && !has('sentinels')) throw new PolicyError('INVALID_OPTION', 'name belongs to sentinels')
  if (has('sentinels') && !has('name'))
    throw invalid('name must be what the sentinels call the master', undefined)
  return options
}

/** Whether no class made it. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function notRedis(given: unknown): Error {
  const place = 'options that say where Redis is (url, host, port, path, sentinels or cluster)'
  return new PolicyError(
    'INVALID_OPTION',
    `redisStore takes ${CLIENTS}, a redis:// URL, or ${place}, got ${described(given)}`,
  )
}

const ITSELF = 'hand in the client itself, redisStore(client)'
const SECOND = 'it belongs to the second argument, redisStore(url, { ... })'
const OWN = "leave it out, a connection of the store's own sets it itself"
const OTHERWISE = `for other settings hand in a client:
  import { Redis } from 'ioredis'
  const client = new Redis({ host, port, maxRetriesPerRequest: 0 })
  const store = redisStore(client)`

/** What clients, other packages and the store itself call options. */
const REPLACEMENTS: Replacements = {
  ...each(['client', 'redis', 'storeClient', 'connection'], ITSELF),
  ...each(['prefix', 'clock', 'denialCache', 'groupCommit', 'maxPending', 'maxShapes', 'lazy'], SECOND),
  ...each(['startTimeout'], SECOND),
  ...each(['maxRetriesPerRequest', 'enableOfflineQueue', 'enableReadyCheck', 'retryStrategy'], OWN),
  ...each(['rootNodes', 'startupNodes', 'nodes'], "it is called 'cluster', a list of { host, port }"),
  socket: 'its host, port, path, tls, connectTimeout and family are options themselves',
  database: "it is called 'db'",
  user: "it is called 'username'",
  hostname: "it is called 'host'",
  keyPrefix: "it is called 'prefix' in the second argument, redisStore(url, { prefix })",
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
    ...Object.fromEntries([...url.searchParams].map(([name, value]) => [name, parameter(name, value)])),
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

/** The name is not shown: a question mark in a password begins the options. */
function parameter(name: string, text: string): unknown {
  if (!IN_URLS.includes(name)) {
    throw new PolicyError('INVALID_OPTION', `the options of a Redis URL are ${IN_URLS.join(', ')}`)
  }
  const value = /^\d+$/.test(text) && name !== 'connectionName' ? Number(text) : text
  const [what, holds] = OPTIONS[name as keyof RedisOptions]
  if (!holds(value)) throw invalid(`${name} must be ${what}`, value)
  return value
}

const IN_URLS: readonly string[] = ['connectTimeout', 'keepAlive', 'family', 'connectionName']

function isWhole(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most
}

function isAddresses(value: unknown): boolean {
  const isAddress = (item: unknown): boolean =>
    isRecord(item) && typeof item['host'] === 'string' && isWhole(item['port'], 1, 65_535)
  return Array.isArray(value) && value.length > 0 && value.every(isAddress)
}

function invalid(what: string, value: unknown): Error {
  return expected(PolicyError, 'INVALID_OPTION', what, value)
}
