import { ipKey, joinKey } from '@sluice/http'
import { digest, storedKey } from '../../../core/src/values/key.js'
import { keyspaceOf, redisKey } from '../../../core/src/stores/redis/key.js'
import type { Outcome, Row } from '../row.js'

/** Keys made of several parts are injective: no two tuples give the same text. An address has one key, however it is written. */
export const row: Row = { number: 22, fault: 'key collisions', run: collide }

/**
 * Makes keys of parts, keys of Redis, and keys of addresses. Passes if different ones never give the same key, and all
 * spellings of an address give one. `share` is the part of the full load, 0 to 1. `share` is the part of the full load, 0 to
 * 1.
 */
function collide(share: number): Outcome {
  const wanted = 100_000 * share
  const composite = collisions(wanted, tuples(COMPOSITE), (parts) => joinKey(...parts))
  const redis = collisions(wanted, redisTuples(), ([name, shape, key]) =>
    redisKey(keyspaceOf('sluice', name!, [shape!]), storedKey(key!)),
  )
  const keys = ADDRESSES.map((spellings) => new Set(spellings.map((address) => ipKey(address))))
  const distinct = new Set(keys.flatMap((each) => [...each])).size
  return {
    pass:
      composite === 0 && redis === 0 && keys.every(({ size }) => size === 1) && distinct === ADDRESSES.length,
    figure: `${ADDRESSES.length} addresses in ${ADDRESSES.flat().length} spellings: ${distinct} keys; ${wanted} composite keys: ${composite} collisions; ${wanted} Redis keys of limiter, shape and caller: ${redis}`,
  }
}

/** Callers, each with the spellings of its address. */
const ADDRESSES = [
  ['10.0.0.1', '::ffff:10.0.0.1', '::ffff:a00:1', '64:ff9b::10.0.0.1', '2002:a00:1::5'],
  ['::10.0.0.1', '::a00:1', '::1', '::'],
  ['64:ff9b:1::10.0.0.1', '64:ff9b:1::a00:1'],
  ['64:ff9b:1::10.0.0.2', '[64:ff9b:1::a00:2]:443'],
  ['2001:db8::1', '2001:DB8:0:0::2', '2001:db8::10.0.0.1'],
]

/** How many of `wanted` different lists of parts were given the key of another. */
function collisions(
  wanted: number,
  source: Iterable<readonly string[]>,
  keyOf: (parts: readonly string[]) => string,
): number {
  const seen = new Map<string, string>()
  let met = 0
  for (const parts of source) {
    const [key, identity] = [keyOf(parts), JSON.stringify(parts)]
    const other = seen.get(key)
    if (other !== undefined && other !== identity) met++
    seen.set(key, identity)
    if (seen.size + met >= wanted) return met
  }
  return met
}

/** Few letters, so that tuples which differ only in where a part ends are common. */
const COMPOSITE = ['a', ':', '%', '%3A', '%25', '']

/** Lists of short texts over these letters, one after the other without end. */
function* tuples(letters: readonly string[]): Generator<string[]> {
  for (let n = 0; ; n++) yield tuple(n, letters)
}

/** The n-th tuple: its letters are the digits of n, with the end of a part as one more digit. */
function tuple(n: number, letters: readonly string[]): string[] {
  const parts = ['']
  for (let rest = n; rest > 0; rest = Math.floor(rest / (letters.length + 1))) {
    const digit = rest % (letters.length + 1)
    if (digit === letters.length) parts.push('')
    else parts[parts.length - 1] += letters[digit]!
  }
  return parts
}

const SHAPES = ['gcra/1000', 'gcra/1000,gcra/60000', 'sliding-window/1000/10']
const NAME_LETTERS = ['a', ':', '%', '%3a', '{', '}', 'gcra/1000', ',', ' ']
const KEY_LETTERS = [
  ...NAME_LETTERS,
  '\0',
  '\x7f',
  '\n',
  'é',
  '😀',
  '\ud83d',
  '\ude00',
  '\ufffd',
  'sha256',
  '25',
]

/** Limiter, shape and caller; callers whose keys are kept as a digest, and those who guess how. */
function* redisTuples(): Generator<string[]> {
  for (let n = 0; ; n++) {
    const shape = SHAPES[n % SHAPES.length]!
    const name = tuple(n % 90, NAME_LETTERS)[0]!
    const key = tuple(Math.floor(n / 90), KEY_LETTERS).join('')
    yield [name, shape, key]
    for (const digested of [`${key}${'x'.repeat(129)}`, `${key}${'é'.repeat(100)}`, `${key}\ud83d`]) {
      yield [name, shape, digested]
      for (const guess of guesses(digested)) yield [name, shape, guess]
    }
  }
}

/** Short keys that look like a digested one. Two of its digits may be what a character is escaped as. */
function guesses(key: string): string[] {
  const hex = digest(key)
  const escaped = String.fromCharCode(parseInt(hex.slice(0, 2), 16))
  return [`sha256:${hex}`, `sha256%${hex}`, `sha256${escaped}${hex.slice(2)}`, `%sha256-${hex}`, hex]
}
