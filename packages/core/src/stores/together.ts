import { type Answer, isDenied, type Keyspace, type Part } from './store.js'

/** Whether one of the enforced parts is denied, so that none may be charged. */
export function isWholeDenied(parts: readonly Pick<Part, 'enforce'>[], answers: readonly Answer[]): boolean {
  return parts.some(({ enforce }, i) => enforce && isDenied(answers[i]!))
}

/** Decides parts whose keyspaces answer at once: in one step of the process, as `Together` does. */
export function decideAtOnce(parts: readonly Part<AtOnce>[]): readonly Answer[] {
  if (parts.every(({ keyspace, key, cost }) => keyspace.fits?.(key, cost))) {
    return parts.map((part) => askAtOnce('consume', part))
  }
  const tried = parts.map((part) => askAtOnce('try', part))
  if (isWholeDenied(parts, tried)) return tried
  return parts.map((part, i) => (isDenied(tried[i]!) ? tried[i]! : askAtOnce('consume', part)))
}

type AtOnce = Pick<Keyspace, 'decide' | 'fits'>

function askAtOnce(what: 'try' | 'consume', { keyspace, key, cost }: Part<AtOnce>): Answer {
  return keyspace.decide(what, key, cost, 0) as Answer
}
