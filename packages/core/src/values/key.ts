import { expected, InputError } from './errors.js'
import { sha256 } from './sha256.js'

/** Longest key that is kept as it is, in UTF-16 units. */
const LONGEST_KEPT = 128
/** Longest key of a caller, in UTF-16 units: the digest of 1 MB would hold up the process for 30 ms. */
const LONGEST = 8192

/**
 * The key as stores keep it: itself, or where it is longer than 128 units `sha256:` and its digest, so that long
 * keys cannot fill the memory. A key that looks like that is digested too, so that it is nobody else's.
 * @throws {InputError} INVALID_KEY when it is not a string, or longer than 8,192 UTF-16 units.
 */
export function storedKey(key: string): string {
  if (typeof key !== 'string') throw expected(InputError, 'INVALID_KEY', 'key must be a string', key)
  if (key.length > LONGEST) {
    throw new InputError('INVALID_KEY', `key must be at most ${LONGEST} UTF-16 units long, got ${key.length}`)
  }
  return key.length <= LONGEST_KEPT && !key.startsWith('sha256:') ? key : `sha256:${digest(key)}`
}

/** SHA-256 in hex of the text's UTF-16 units: unlike in UTF-8, lone surrogates stay apart. */
export function digest(text: string): string {
  const bytes = new Uint8Array(text.length * 2)
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    bytes[2 * i] = unit & 0xff
    bytes[2 * i + 1] = unit >>> 8
  }
  return sha256(bytes)
}
