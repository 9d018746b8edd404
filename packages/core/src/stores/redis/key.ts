import { formatDuration, millisecondsOf } from '../../values/duration.js'
import { digest } from '../../values/key.js'

/**
 * The format of the state in Redis, a part of every key. A change to the place, unit or meaning of a header field, cell, slot
 * or ring entry, or of a member of a semaphore or board, must raise it, so that processes of two versions never touch each
 * other's keys. While both run, each admits its full limit. test/stores/redis/state-format.test.ts holds a digest of the layout.
 */
export const STATE_FORMAT = 4
const LONGEST = 128 // bytes of the caller's part of a key

/**
 * Returns the Redis key of a caller's key: `prefix:format:name:shapes:key`; in a store with groups a hash tag stands before `key`.
 * `keyspace` is the part up to the shapes. The caller's key is escaped, so that no two of them are one key in Redis and that braces
 * choose no Cluster slot. Its colons need no escape, as it comes last.
 */
export function redisKey(keyspace: string, key: string, tag = ''): string {
  return `${keyspace}:${tag}${callerPart(key)}`
}

/**
 * Returns `prefix:format:name:shapes`, with which the Redis keys of all callers of one limiter begin. Windows are written as short
 * as can be, as each key in Redis has them: `gcra/60000` is `gcra/1m`.
 */
export function keyspaceOf(prefix: string, name: string, shapes: readonly string[]): string {
  const short = shapes.map((shape) =>
    shape.replace(/\/(\d+)/, (_, ms: string) => `/${formatDuration(Number(ms))}`),
  )
  return [prefix, STATE_FORMAT, escaped(name).replaceAll(':', '%3a'), short.join(',')].join(':')
}

/** A key of Redis, read. */
export interface RedisKeyParts {
  readonly format: number
  /** Empty for what belongs to all limiters of a prefix. */
  readonly limiter: string
  readonly shapes: string
  /** The caller's key as stores keep it; undefined where Redis has only its digest. */
  readonly key: string | undefined
}

/**
 * Reads a key of Redis that `redisKey` made in this or another format: the number of the format, the limiter's name, the shapes
 * (algorithms and windows) of its policies, with windows in milliseconds, and the caller's key, undefined if only a digest of it is
 * there. Returns undefined for a key of other software.
 */
export function partsOf(prefix: string, redisKey: string): RedisKeyParts | undefined {
  const parts = redisKey.startsWith(`${prefix}:`) ? redisKey.slice(prefix.length + 1).split(':') : []
  const [format = '', name = '', shapes, ...rest] = parts
  if (rest.length > 1 && rest[0]!.startsWith('{')) rest.shift() // the tag of a group
  const key = rest.join(':')
  if (!/^\d+$/.test(format) || rest.length === 0) return undefined
  const isDigest = key.startsWith('%sha256-')
  return {
    format: Number(format),
    limiter: unescaped(name),
    shapes: shapes!.replace(/\/(\d+[a-z]+)/g, (_, window: string) => `/${millisecondsOf(window)}`),
    key: isDigest ? undefined : unescaped(key),
  }
}

function unescaped(text: string): string {
  return text.replace(/%([\da-f]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}

/** Returns a key escaped; its digest if that is too long or the key has lone surrogates, which UTF-8 writes all alike. */
function callerPart(key: string): string {
  const ascii = escapedAscii(key)
  if (ascii !== undefined && ascii.length <= LONGEST) return ascii
  const part = escaped(key)
  const fits = Buffer.byteLength(part) <= LONGEST && !/\p{Surrogate}/u.test(key)
  return fits ? part : `%sha256-${digest(key)}` // no escape of another key begins with %s, so none can equal this
}

/** Returns the text with a percent sign and two hex digits for each percent sign, brace and control. */
function escaped(text: string): string {
  return text.replace(/[%{}\p{Cc}]/gu, (char) => ESCAPES[char.charCodeAt(0)]!)
}

/**
 * Escapes the characters of a text that may not stand in a part of a Redis key (those that have an entry in ESCAPES), as `escaped` does,
 * but faster. Undefined for a text with characters beyond ASCII.
 */
function escapedAscii(text: string): string | undefined {
  let part = ''
  let from = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > ASCII) return undefined
    const escape = ESCAPES[code]!
    if (escape === '') continue
    part += text.slice(from, i) + escape
    from = i + 1
  }
  return from === 0 ? text : part + text.slice(from)
}

/** The escape of each control and of what has a meaning in keys, by its code; empty for all other characters. */
const ESCAPES: readonly string[] = Array.from({ length: 0xa0 }, (_, code) =>
  /[%{}\p{Cc}]/u.test(String.fromCharCode(code)) ? `%${code.toString(16).padStart(2, '0')}` : '',
)
const ASCII = 0x7f
