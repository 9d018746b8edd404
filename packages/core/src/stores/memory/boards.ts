import type { Clock } from '../../values/clock.js'
import type { Board } from '../store.js'

/**
 * A board in this process, on which authors leave texts for each other: each has one in `notes`, until it expires. `now` returns
 * microseconds.
 */
export function memoryBoard(notes: Map<string, Note>, now: Clock): Board {
  return {
    /** Replaces the author's text, which expires after `lifeMs` milliseconds. Expired texts of others are removed first. */
    post(author, text, lifeMs) {
      const at = now()
      for (const [other, { until }] of notes) if (until <= at) notes.delete(other)
      notes.set(author, { text, until: at + lifeMs * 1000 })
    },
    /** The texts of all authors that have not expired. */
    read() {
      const at = now()
      return [...notes.values()].filter(({ until }) => until > at).map(({ text }) => text)
    },
  }
}

export interface Note {
  readonly text: string
  /** Microseconds. */
  readonly until: number
}
