import type { History } from './simulation.js'

/** A law, and whether a history keeps it. */
export interface Law {
  readonly name: string
  /** Where it is promised: a section of the design, or of docs/outages.md. */
  readonly source: string
  /** Each breach in words, and in `checked` how often the law was applied. */
  breaches(history: History, count: (checked: number) => void): Iterable<string>
}

/** Lists by what `by` says of each. */
export function grouped<T>(list: readonly T[], by: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const each of list) {
    const group = groups.get(by(each))
    if (group) group.push(each)
    else groups.set(by(each), [each])
  }
  return groups
}
