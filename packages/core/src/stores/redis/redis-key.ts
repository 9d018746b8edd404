import { digest } from '../../values/key.js'

/**
 * The format of the state in Redis, a part of every key. Whatever changes the place, the unit or the meaning of a header
 * field, a cell, a slot or a ring entry raises it, so that processes of two versions never touch each other's keys: while
 * both run, each of them admits its limit. test/redis/state-format.test.ts holds a digest of the layout.
 */
export const STATE_FORMAT = 1

/** Longest form of the caller's part, in bytes. */
const LONGEST = 128

/**
 * The Redis key of a caller: `prefix:format:name:shapes:key`. Percent signs, colons, braces and controls in names and keys
 * are escaped, so no two limiters or callers meet in one key, and callers' braces never choose a Cluster slot. What is
 * longer than 128 bytes, or not well-formed Unicode, is kept as its digest.
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

/** Of most keys only the colons are escaped, and their bytes are their characters. */
const EASY = /^[ -$&-z|~]*$/

function escaped(text: string): string {
  return text.replace(/[%{}:\p{Cc}]/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
