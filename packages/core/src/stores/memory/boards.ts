import type { Clock } from '../../values/clock.js'
import type { Board } from '../store.js'

/**
 * A board in this process. Each author, which is a process or a part of one, posts its latest text there, and all can
 * read it. So the top keys that each has counted can be added up. A text stands in `notes` until it expires, as its author may
 * be gone. `now` returns microseconds.
 */
export function memoryBoard(notes: Map<string, Note>, now: Clock): Board {
  return {
    /** Replaces the author's text, which expires after `lifeMs` milliseconds. Expired texts of others are removed first. */
    post(author, text, lifeMs) {
      const at = now()
      for (const [other, { until }] of notes) if (until <= at) notes.delete(other)
      notes.set(author, { text, until: at + lifeMs * 1000 })
    },
    /** The texts of all authors, such as the top keys that each process has counted, without those that have expired. */
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
