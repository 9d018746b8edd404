import type { Clock } from '../../values/clock.js'
import type { Board } from '../board.js'

/** The boards of this process, by name. */
export class MemoryBoards {
  readonly #boards = new Map<string, Map<string, Note>>()

  /** `now` in microseconds. */
  constructor(private readonly now: Clock) {}

  /** The board of a name, on which each author has one text until its time is over. It is made with the first call. */
  open(name: string): Board {
    const posts = this.#boards.get(name) ?? new Map<string, Note>()
    this.#boards.set(name, posts)
    return {
      post: (author, text, lifeMs) => {
        const now = this.now()
        for (const [other, { until }] of posts) if (until <= now) posts.delete(other)
        posts.set(author, { text, until: now + lifeMs * 1000 })
      },
      read: () => {
        const now = this.now()
        return [...posts.values()].filter(({ until }) => until > now).map(({ text }) => text)
      },
    }
  }
}

interface Note {
  readonly text: string
  /** Microseconds. */
  readonly until: number
}
