import { joinKey } from '@sluice/core/http'
import type { Outcome, Row } from './row.js'

/** Composite keys are injective: no two tuples give the same text. */
export const row: Row = { number: 22, fault: 'key collisions', run: collide }

/** Few letters, so that tuples which differ only in where a part ends are common. */
const LETTERS = ['a', ':', '%', '%3A', '%25', '']

function collide(share: number): Outcome {
  const wanted = 100_000 * share
  const tuples = new Map<string, string>()
  let collisions = 0
  for (let n = 0; tuples.size < wanted; n++) {
    const parts = tuple(n)
    const key = joinKey(...parts)
    const seen = tuples.get(key)
    const identity = JSON.stringify(parts)
    if (seen !== undefined && seen !== identity) collisions++
    tuples.set(key, identity)
  }
  return { pass: collisions === 0, figure: `${tuples.size} tuples: ${collisions} collisions` }
}

/** The n-th tuple: its letters are the digits of n, with commas between parts as one more digit. */
function tuple(n: number): string[] {
  const parts = ['']
  for (let rest = n; rest > 0; rest = Math.floor(rest / (LETTERS.length + 1))) {
    const digit = rest % (LETTERS.length + 1)
    if (digit === LETTERS.length) parts.push('')
    else parts[parts.length - 1] += LETTERS[digit]!
  }
  return parts
}
