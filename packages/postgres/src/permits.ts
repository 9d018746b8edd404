import { ALIVE_US, CLAIM_US, type Gathering } from '@sluice/core/internal'
import type { Board, Permits, PermitStep, TicketState } from '@sluice/core/store'
import { KeptPermits } from './kept-permits.js'
import { numbersOf, stateOf } from './packed.js'

/** The permits of one semaphore of this process: each step is one update of the row of its key. */
export class PostgresPermits implements Permits {
  readonly #semaphore = Math.floor(Math.random() * 2 ** 52)

  /**
   * The permits of one semaphore of this process. For each key, one row of the table keeps the permits and the queue of the calls
   * that wait for one. `gathering` changes these rows, in one update for all calls that come together. A permit lasts `leaseMs`
   * milliseconds unless it is renewed.
   */
  constructor(
    readonly gathering: Gathering,
    readonly name: string,
    readonly leaseMs: number,
  ) {}

  /**
   * Takes one step (`take`, `wait`, `poll`, `renew` or `release`) for tickets of this semaphore, which are numbers of its calls.
   * The step is a change of the row that keeps the key's permits and queue. Returns how each ticket stands after it: unknown,
   * waiting or held. `limit` is this semaphore's: its tickets get permits of the key only while fewer are held. The row is kept
   * for as long as anything in it may matter.
   */
  async ask(
    step: PermitStep,
    key: string,
    tickets: readonly number[],
    limit: number,
  ): Promise<readonly TicketState[]> {
    const id = JSON.stringify(['permits', this.name]).slice(1) + key // those of keyspaces begin with a bracket
    const lease = this.leaseMs * 1000
    const call = { step, semaphore: this.#semaphore, name: this.name, key, tickets, limit, lease }
    return this.gathering.run([id], (changing) =>
      changing(id, (state, now) => {
        const queue = new KeptPermits(numbersOf(state))
        const result = queue.carryOut(call, now)
        const lasts = Math.max(now + lease, queue.heldUntil) // other semaphores of the name may have longer leases
        return { result, ...rowOf(queue.numbers, lasts + CLAIM_US + ALIVE_US + A_SECOND) }
      }),
    )
  }

  /** Grants are not announced: LISTEN needs a separate connection, which PgBouncer does not give. `poll` is enough. */
  listen(): void {}
  close(): void {}
}

/**
 * Makes a board: texts that processes leave for each other, such as the keys that each of them counts most often. Each post, a text
 * with its author, lasts for its `lifeMs`, and a new one replaces the last one of its author. One row has the whole board, under
 * an id that no keyspace has, as theirs begin with a bracket. The row is a list of numbers: for each post the instant of its end
 * in microseconds, then its author and its text, each as its length and its characters. It is kept for a second longer than the
 * last post. No post lives longer than an hour, so one that seems to was made before the clock was set back, and is dropped.
 */
export function postgresBoard(gathering: Gathering, name: string): Board {
  const id = JSON.stringify(['board', name]).slice(1)
  /**
   * Adds `post` to the board, in place of the last one of its author, and returns all posts that have not expired. Without a
   * `post` it only reads: it returns the state as it was, so that nothing is written.
   */
  const change = (post?: { author: string; text: string; lifeMs: number }): Promise<readonly BoardPost[]> =>
    Promise.resolve(
      gathering.run([id], (changing) =>
        changing(id, (state, now) => {
          const posts = postsIn(numbersOf(state)).filter(({ until }) => until > now && until <= now + AN_HOUR)
          if (!post) return { result: posts, state, expiresAt: Infinity }
          const { author, text, lifeMs } = post
          const others = posts.filter((each) => each.author !== author)
          const all = [...others, { until: now + lifeMs * 1000, author, text }]
          const numbers = all.flatMap((each) => [each.until, ...unitsOf(each.author), ...unitsOf(each.text)])
          const lastEnd = Math.max(...all.map(({ until }) => until))
          return { result: all, ...rowOf(numbers, lastEnd + A_SECOND) }
        }),
      ),
    )
  return {
    post: async (author, text, lifeMs) => {
      await change({ author, text, lifeMs })
    },
    read: async () => (await change()).map(({ text }) => text),
  }
}

interface BoardPost {
  /** Microseconds. */
  readonly until: number
  readonly author: string
  readonly text: string
}

/** Returns a text as numbers: its length, then its UTF-16 units. */
function unitsOf(text: string): readonly number[] {
  return [text.length, ...Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))]
}

/** Reads the posts from a board's list of numbers. A post is the instant of its end, then its author and its text (`unitsOf`). */
function postsIn(numbers: readonly number[]): readonly BoardPost[] {
  const posts: BoardPost[] = []
  let at = 0
  /** Reads the text at `at`, which is its length and its UTF-16 units. Moves `at` past it. */
  const textAt = (): string => {
    const start = at + 1
    at = start + numbers[start - 1]!
    return numbers
      .slice(start, at)
      .map((unit) => String.fromCharCode(unit))
      .join('')
  }
  while (at < numbers.length) posts.push({ until: numbers[at++]!, author: textAt(), text: textAt() })
  return posts
}

/**
 * Returns what a change leaves in a row: the state of these numbers, none of an empty list, and the instant after which the row
 * may be dropped.
 */
function rowOf(
  numbers: readonly number[],
  expiresAt: number,
): { state: Uint8Array | undefined; expiresAt: number } {
  return { state: numbers.length > 0 ? stateOf(numbers) : undefined, expiresAt }
}

const A_SECOND = 1_000_000
/** No post lives longer. A post with a later end was made before the clock was set back. */
const AN_HOUR = 3_600_000_000
