import { startClocks, stopClocks } from '../values/clock.js'
import { isDenied } from './store.js'
import type { Answer, Keyspace, Part, Together, WholeReceiver } from './store.js'

/** Keys of one call on several. */
export const MOST_PARTS = 16

/**
 * Whether a call on several keys is denied as a whole, by these answers to its first parts (one part a key): if one is denied
 * that is enforced. A part in shadow mode is not enforced, so its denial denies nothing else.
 */
export function isWholeDenied(parts: readonly Pick<Part, 'enforce'>[], answers: readonly Answer[]): boolean {
  for (let i = 0; i < answers.length; i++) if (parts[i]!.enforce && isDenied(answers[i]!)) return true
  return false
}

/**
 * Makes a store ready to decide all these parts (a key and its cost each) in one atomic step, and returns its means to do so.
 * Undefined if no store can: the keyspaces have no such means or, by their `program`, different ones, or the store refuses.
 */
export function prepareOneStep(parts: readonly Part[]): Together | undefined {
  const { together } = parts[0]!.keyspace
  if (together === undefined) return undefined
  for (const { keyspace } of parts) if (keyspace.together?.program !== together.program) return undefined
  if (!together.prepare) return together
  return together.prepare(parts.map(({ keyspace }) => keyspace)) ? together : undefined
}

/**
 * Decides a call on several keys whose parts (a key and its cost each) are all kept in this process, and returns one answer a
 * part. All are charged, or none: in one step of the store if it has the means (`together`), else one after the other, which is
 * as good because no other call comes between.
 */
export function decideHere(parts: readonly Part[]): readonly Answer[] {
  const together = prepareOneStep(parts)
  return together ? (together.decide(parts, NO_RECEIVER) as readonly Answer[]) : decideAtOnce(parts)
}

/** A store in this process returns its answers. */
const NO_RECEIVER: WholeReceiver = { answered() {}, failed() {} }

/**
 * Decides a call on several keys, of which each part is one key and its cost, and returns one answer a part, in their order. All
 * are charged, or none if an enforced part is denied; a denied part in shadow mode (not enforced) is just not charged itself.
 * Keyspaces answer at once here, so no other call comes between, and the clocks stand still: to read one takes as long as a step.
 */
export function decideAtOnce(parts: readonly Part<AtOnce>[]): readonly Answer[] {
  stopClocks()
  try {
    return doOthersFit(parts) ? decideByFirst(parts) : decideAfterTries(parts)
  } finally {
    startClocks()
  }
}

/** Decides a call of which all parts but the first surely fit, so that the first part's answer decides for all. */
function decideByFirst(parts: readonly Part<AtOnce>[]): readonly Answer[] {
  const answers = Array<Answer>(parts.length)
  answers[0] = askAtOnce('consume', parts[0]!)
  // If the first is denied, nothing was charged yet.
  const ask = parts[0]!.enforce && isDenied(answers[0]) ? 'try' : 'consume'
  for (let i = 1; i < parts.length; i++) answers[i] = askAtOnce(ask, parts[i]!)
  return answers
}

/**
 * Decides a call whose parts may not all fit: tries every part, which charges nothing, and if none of them denies the whole, charges
 * those that fit. A part in shadow mode that does not fit denies only itself.
 */
function decideAfterTries(parts: readonly Part<AtOnce>[]): readonly Answer[] {
  const tried = parts.map((part) => askAtOnce('try', part))
  if (isWholeDenied(parts, tried)) return tried
  return parts.map((part, i) => (isDenied(tried[i]!) ? tried[i]! : askAtOnce('consume', part)))
}

/** A keyspace that answers at once, without a promise. */
type AtOnce = Pick<Keyspace, 'decide' | 'fits'>

/**
 * Whether all parts but the first (a key and its cost each) surely fit now, by the quick test `fits` of their keyspaces. False if
 * one has no such test: the caller then tries each part.
 */
function doOthersFit(parts: readonly Part<AtOnce>[]): boolean {
  for (let i = 1; i < parts.length; i++) {
    const { keyspace, key, cost } = parts[i]!
    if (!keyspace.fits?.(key, cost)) return false
  }
  return true
}

/**
 * Returns the answer of one part's keyspace to a call now, which may not wait (0). `consume` charges the cost if it fits, `try`
 * answers the same and charges nothing. The keyspace answers at once, so there is no promise.
 */
function askAtOnce(what: 'try' | 'consume', { keyspace, key, cost }: Part<AtOnce>): Answer {
  return keyspace.decide(what, key, cost, 0) as Answer
}
