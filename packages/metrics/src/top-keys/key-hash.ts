import { PolicyError } from '@sluice/core'
import { digest } from '@sluice/core/internal'
import { returnedText } from '../returned-text.js'
import type { Summary } from './summary.js'

/** Writes another text in place of a key. Different keys need different texts. */
export type KeyHash = (key: string) => string

/**
 * The text that `hashKeys: true` lists in place of a key: 16 hex digits of its SHA-256, to find a caller whose key is known. A
 * key that can be guessed, such as an address, can be found from its hash; a function with a secret prevents that.
 */
export function hashKey(key: string): string {
  return digest(key).slice(0, 16)
}

/** @throws {PolicyError} INVALID_OPTION. */
export function keyHashOf(hashKeys: boolean | KeyHash | undefined): KeyHash {
  if (typeof hashKeys === 'function') return (key) => returnedText('hashKeys', hashKeys(key))
  if (hashKeys === true) return hashKey
  if (hashKeys === undefined || hashKeys === false) return (key) => key
  throw new PolicyError('INVALID_OPTION', 'hashKeys must be a boolean or a function of the key')
}

export function hashed(summary: Summary, hash: KeyHash): Summary {
  return { ...summary, keys: summary.keys.map((each) => ({ ...each, key: hash(each.key) })) }
}
