import { expectedButGot, InputError } from './errors.js'
import { sha256 } from './sha256.js'

/** Longest key that is stored unchanged, in UTF-16 units. */
const LONGEST_KEPT = 128
/** Longest key of a caller, in UTF-16 units: the digest of 1 MB would block the process for 30 ms. */
const LONGEST = 8192

/**
 * The key as stores keep it. A key longer than 128 units becomes `sha256:` and its digest, so that long keys cannot fill the
 * memory. A key that begins with `sha256:` is digested too, so that it cannot equal the digest of another.
 * @throws {InputError} INVALID_KEY when it is not a string, or longer than 8,192 UTF-16 units.
 */
export function storedKey(key: string): string {
  // V8 compares three characters in place, and calls a function to compare more.
  const isKept = typeof key === 'string' && key.length <= LONGEST_KEPT && !key.startsWith('sha')
  return isKept ? key : unusualKey(key)
}

/**
 * Returns an equal text with memory of its own, for a key that enters a map. V8 keeps a text that was cut out of a longer one,
 * such as a header, as a reference to the whole, which the map would keep alive. A look-up needs no copy.
 */
export function copiedText(text: string): string {
  // Of the ways to copy a text this one leaves no second object behind.
  return text.length < SHORTEST_CUT ? text : [text[0], text.slice(1)].join('')
}

/** V8 copies texts that are cut shorter than this. */
const SHORTEST_CUT = 13

/**
 * The key as stores keep it, for a key that is long, begins with 'sha' or is no string. A key above 128 units, or one that looks
 * like a digest, becomes `sha256:` and its digest; other keys stay. The latest digest is remembered, as one call asks for it
 * several times.
 * @throws {InputError} INVALID_KEY.
 */
function unusualKey(key: string): string {
  if (typeof key !== 'string') throw expectedButGot(InputError, 'INVALID_KEY', 'key must be a string', key)
  if (key.length > LONGEST) {
    throw new InputError('INVALID_KEY', `key must be at most ${LONGEST} UTF-16 units long, got ${key.length}`)
  }
  if (key.length <= LONGEST_KEPT && !key.startsWith('sha256:')) return key
  if (latest.key !== key) latest = { key, stored: `sha256:${digest(key)}` }
  return latest.stored
}

/** The key that was digested last: a limiter, its adapter and its lists of keys each ask for the same one. */
let latest = { key: '', stored: '' }

/**
 * SHA-256 of a text, in hex. The text's UTF-16 units are hashed, two bytes each: in UTF-8 all lone halves of surrogate pairs
 * would be the same character, and different keys would have one digest.
 */
export function digest(text: string): string {
  const bytes = new Uint8Array(text.length * 2)
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    bytes[2 * i] = unit & 0xff
    bytes[2 * i + 1] = unit >>> 8
  }
  return sha256(bytes)
}
