import { isDenied } from './store.js'
import type { Answer, Keyspace, Part, Together, WholeReceiver } from './store.js'

/** Whether one of the enforced parts is denied, of those that have an answer, so that none may be charged. */
export function isWholeDenied(parts: readonly Pick<Part, 'enforce'>[], answers: readonly Answer[]): boolean {
  for (let i = 0; i < answers.length; i++) if (parts[i]!.enforce && isDenied(answers[i]!)) return true
  return false
}

/** The program that has all these parts; undefined if there is no such one. */
export function programOf(parts: readonly Part[]): Together | undefined {
  const { together } = parts[0]!.keyspace
  if (together === undefined) return undefined
  for (const { keyspace } of parts) if (keyspace.together?.program !== together.program) return undefined
  return together
}

/** Decides parts that are all in this process: by the program that has them, else one after the other. */
export function decideHere(parts: readonly Part[]): readonly Answer[] {
  const program = programOf(parts)
  return program ? (program.decide(parts, NO_RECEIVER) as readonly Answer[]) : decideAtOnce(parts)
}

/** A store in this process returns its answers. */
const NO_RECEIVER: WholeReceiver = { answered() {}, failed() {} }

/**
 * Decides a call on several keys, of which each part is one key and its cost: all are charged, or none. Keyspaces answer
 * at once here, so no other call comes between. If all parts but the first surely fit, the first one's answer decides;
 * otherwise all are tried without a charge before any is charged. Returns one answer a part, in their order.
 */
export function decideAtOnce(parts: readonly Part<AtOnce>[]): readonly Answer[] {
  if (doOthersFit(parts)) {
    const answers = Array<Answer>(parts.length)
    answers[0] = askAtOnce('consume', parts[0]!)
    // If the first is denied, nothing was charged yet.
    const ask = parts[0]!.enforce && isDenied(answers[0]) ? 'try' : 'consume'
    for (let i = 1; i < parts.length; i++) answers[i] = askAtOnce(ask, parts[i]!)
    return answers
  }
  const tried = parts.map((part) => askAtOnce('try', part))
  if (isWholeDenied(parts, tried)) return tried
  return parts.map((part, i) => (isDenied(tried[i]!) ? tried[i]! : askAtOnce('consume', part)))
}

type AtOnce = Pick<Keyspace, 'decide' | 'fits'>

/** Whether all parts but the first are known to fit, as far as their keyspaces can say so without deciding them. */
function doOthersFit(parts: readonly Part<AtOnce>[]): boolean {
  for (let i = 1; i < parts.length; i++) {
    const { keyspace, key, cost } = parts[i]!
    if (!keyspace.fits?.(key, cost)) return false
  }
  return true
}

/** The answer of one part's keyspace, for a call now: `consume` charges the cost if it fits, `try` never charges. */
function askAtOnce(what: 'try' | 'consume', { keyspace, key, cost }: Part<AtOnce>): Answer {
  return keyspace.decide(what, key, cost, 0) as Answer
}
