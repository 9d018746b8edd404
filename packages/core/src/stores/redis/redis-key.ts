import { digest } from '../../values/key.js'

/**
 * The format of the state in Redis, a part of every key. A change to the place, unit or meaning of a header field, cell, slot
 * or ring entry must raise it, so that processes of two versions never touch each other's keys. While both run, each admits
 * its full limit. test/redis/state-format.test.ts holds a digest of the layout.
 */
export const STATE_FORMAT = 2

/** Longest caller's part, in bytes. */
const LONGEST = 128

/**
 * The Redis key of a caller: `prefix:format:name:shapes:key`. Percent signs, colons, braces and controls in names and keys
 * are escaped, so that no two limiters or callers share a key and braces in keys never choose a Cluster slot. A part longer
 * than 128 bytes, or of malformed Unicode, is replaced by its digest.
 */
export function redisKey(keyspace: string, key: string): string {
  return `${keyspace}:${callerPart(key)}`
}

/** `prefix:format:name:shapes`, the same for all callers. */
export function keyspaceOf(prefix: string, name: string, shapes: readonly string[]): string {
  return [prefix, STATE_FORMAT, escaped(name), shapes.join(',')].join(':')
}

function callerPart(key: string): string {
  if (EASY.test(key)) {
    const part = key.replaceAll(':', '%3a')
    if (part.length <= LONGEST) return part
  }
  const part = escaped(key)
  const fits = Buffer.byteLength(part) <= LONGEST && !/\p{Surrogate}/u.test(key)
  return fits ? part : `%sha256-${digest(key)}` // no escape begins with an s
}

/** Most keys match this: only their colons need escaping, and they have one byte per character. */
const EASY = /^[ -$&-z|~]*$/

function escaped(text: string): string {
  return text.replace(/[%{}:\p{Cc}]/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
