import type { Decision } from '@sluice/core'
import { returnedText } from '../returned-text.js'
import type { Observe } from '../sinks/sink.js'
import { BoundedLabels, OTHER } from './bounded-labels.js'
import { RESULT_COUNT, resultName, resultOf } from './policy-counts.js'

/** Makes a short text of a key, for example the tier of a customer. */
export type TagOf = (key: string) => string

/** Decisions by tag: the first 100 tags, then 'other'. */
export class TagCounts {
  readonly #limiter: string
  readonly #tags = new BoundedLabels(MOST_TAGS)
  readonly #counts: number[] = []

  constructor(limiter: string) {
    this.#limiter = limiter
  }

  count(tag: string, decision: Decision): void {
    const cell = this.#tags.numberOf(tag) * RESULT_COUNT + resultOf(decision)
    this.#counts[cell] = (this.#counts[cell] ?? 0) + 1
  }

  read(observe: Observe): void {
    this.#counts.forEach((count, cell) => {
      const tag = this.#tags.labels[Math.floor(cell / RESULT_COUNT)]!
      observe(count, { limiter: this.#limiter, tag, result: resultName(cell % RESULT_COUNT) })
    })
  }
}

/** The tag of a key; 'other' for one that is too long, and where none can be made, which `warn` gets the reason of. */
export function tagOf(key: string, make: TagOf, warn: (message: string) => void): string {
  try {
    const tag = returnedText('tag', make(key))
    return tag.length <= LONGEST_TAG ? tag : OTHER
  } catch (error) {
    warn(`a key without a tag is counted as '${OTHER}': ${String(error)}`)
    return OTHER
  }
}

const MOST_TAGS = 100
const LONGEST_TAG = 100
