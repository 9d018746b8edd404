import { digest } from '../../values/key.js'

/**
 * The format of the state in Redis, a part of every key. A change to the place, unit or meaning of a header field, cell, slot
 * or ring entry, or of a member of a semaphore or board, must raise it, so that processes of two versions never touch each
 * other's keys. While both run, each admits its full limit. test/stores/redis/state-format.test.ts holds a digest of the layout.
 */
export const STATE_FORMAT = 3

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
  const ascii = escapedAscii(key)
  if (ascii !== undefined && ascii.length <= LONGEST) return ascii
  const part = escaped(key)
  const fits = Buffer.byteLength(part) <= LONGEST && !/\p{Surrogate}/u.test(key)
  return fits ? part : `%sha256-${digest(key)}` // no escape begins with an s
}

function escaped(text: string): string {
  return text.replace(/[%{}:\p{Cc}]/gu, (char) => ESCAPES[char.charCodeAt(0)]!)
}

/** The same as `escaped`, or undefined if the text is not ASCII. Most keys are, and a loop takes a third of the time of a RegExp. */
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
  /[%{}:\p{Cc}]/u.test(String.fromCharCode(code)) ? `%${code.toString(16).padStart(2, '0')}` : '',
)
const ASCII = 0x7f
