import { PolicyError } from '@sluice/core'
import { digest } from '@sluice/core/internal'
import { returnedText } from '../returned-text.js'
import type { Summary } from './summary.js'

/** Writes another text in place of a key, of which a long one is `sha256:` and its digest. Different keys need different texts. */
export type KeyHash = (key: string) => string

/**
 * The text that `hashKeys: true` lists in place of a key: 16 hex digits of its SHA-256, to find a caller whose key is known. A
 * key that can be guessed, such as an address, can be found from its hash; a function with a secret prevents that.
 */
export function hashKey(key: string): string {
  return digest(key).slice(0, DIGITS)
}

/**
 * The text that `hashKey` makes of a key, 16 hex digits of its SHA-256, for the key as stores keep it. Stores keep a long key as
 * `sha256:` and its digest, which must not be hashed once more: the first digits of that digest are taken.
 */
function hashStored(key: string): string {
  return key.startsWith(DIGESTED) ? key.slice(DIGESTED.length, DIGESTED.length + DIGITS) : hashKey(key)
}

const DIGITS = 16
const DIGESTED = 'sha256:'

/**
 * The function that makes the text by which lists show a key, by the option `hashKeys`: for true the first 16 digits of
 * the key's digest, for a function the text that it returns, and for false or undefined the key as it is.
 * @throws {PolicyError} INVALID_OPTION.
 */
export function keyHashOf(hashKeys: boolean | KeyHash | undefined): KeyHash {
  if (typeof hashKeys === 'function') return (key) => returnedText('hashKeys', hashKeys(key))
  if (hashKeys === true) return hashStored
  if (hashKeys === undefined || hashKeys === false) return (key) => key
  throw new PolicyError('INVALID_OPTION', 'hashKeys must be a boolean or a function of the key')
}

/** A copy of a summary (the heaviest keys with their counts) in which each key is replaced by the text that `hash` makes of it. */
export function hashed(summary: Summary, hash: KeyHash): Summary {
  return { ...summary, keys: summary.keys.map((keyCount) => ({ ...keyCount, key: hash(keyCount.key) })) }
}
