import { InputError } from '@sluice/core'
import { expectedButGot } from '@sluice/core/internal'

/** Text or a number, as databases give ids. The number 1 and the text '1' are the same key. */
export type KeyPart = string | number | bigint

/**
 * Joins parts to a key. Different lists of parts give different keys: `a:b` and `c` differ from `a` and `b:c`.
 * @throws {InputError} INVALID_KEY if there are no parts, or if one is missing or not an id.
 */
export function joinKey(...parts: readonly KeyPart[]): string {
  let key = escaped(parts[0]!)
  for (let i = 1; i < parts.length; i++) key += `:${escaped(parts[i]!)}`
  return key
}

/**
 * A part of a key with its colons and percent signs escaped: parts are joined by colons, so a colon inside one could be
 * mistaken for the next part's beginning.
 */
function escaped(part: KeyPart): string {
  const text = typeof part === 'string' ? part : numberText(part)
  return /[%:]/.test(text) ? text.replaceAll('%', '%25').replaceAll(':', '%3A') : text
}

/**
 * A number as a part of a key.
 * @throws {InputError} INVALID_KEY for a value of another type: an object would become `[object Object]`, and undefined
 * `undefined`, which is one key for all callers.
 */
function numberText(part: number | bigint): string {
  if (typeof part === 'bigint' || Number.isFinite(part)) return String(part)
  throw expectedButGot(
    InputError,
    'INVALID_KEY',
    'a part of a key must be a string, a number or a bigint',
    part,
  )
}
