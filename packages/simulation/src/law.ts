import type { History } from './simulation.js'

/** A law, and whether a history keeps it. */
export interface Law {
  readonly name: string
  /** Where it is promised: a section of the design, or of docs/outages.md. */
  readonly source: string
  /** Each breach in words, and in `checked` how often the law was applied. */
  breaches(history: History, count: (checked: number) => void): Iterable<string>
}
