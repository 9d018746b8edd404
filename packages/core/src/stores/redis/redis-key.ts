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
  if (key.length <= LONGEST && isPlain(key)) return key
  const part = escaped(key)
  const fits = Buffer.byteLength(part) <= LONGEST && !/\p{Surrogate}/u.test(key)
  return fits ? part : `%sha256-${digest(key)}` // no escape begins with an s
}

/** Whether nothing in the key needs escaping, and each character has one byte. A loop takes less time than a RegExp. */
function isPlain(key: string): boolean {
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i)
    if (code < SPACE || code > TILDE || code === PERCENT || code === COLON) return false
    if (code === OPENING_BRACE || code === CLOSING_BRACE) return false
  }
  return true
}

const [SPACE, PERCENT, COLON, OPENING_BRACE, CLOSING_BRACE, TILDE] = [0x20, 0x25, 0x3a, 0x7b, 0x7d, 0x7e]

function escaped(text: string): string {
  return text.replace(/[%{}:\p{Cc}]/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
