import { type Board, type Limiter, PolicyError, type Store, StoreError } from '@sluice/core'
import type { Denial } from '../denials/denial.js'
import type { KeyCounts } from './key-counts.js'
import type { KeyHash } from './key-hash.js'
import { limitOf, textOf } from './post.js'

/**
 * The board of a store on which processes leave each other their top keys: texts that each live for a time.
 * @throws {PolicyError} INVALID_OPTION for a store without boards.
 */
export function boardOf(store: Store): Board {
  if (typeof store?.board === 'function') return store.board('top-keys')
  throw new PolicyError(
    'INVALID_OPTION',
    'the store of a fleet must be one with a board, in Redis, in Postgres or in memory; a machineStore has none',
  )
}

/** What is posted for other processes: the counts of a limiter, or a list of denials. `limiter` warns if it cannot be posted. */
export interface Shared {
  readonly limiter: Pick<Limiter, 'name' | 'isClosed' | 'warn'> & Partial<Pick<Limiter, 'policies'>>
  readonly counts?: KeyCounts
  readonly hash: KeyHash
  /** Returns the newest denials, `most` of them, the newest first. */
  readonly denials?: (most: number) => readonly Denial[]
}

/**
 * Writes what this process has counted, and its last denials, to the board of one store: one text every 10 s. Each replaces the one
 * before, so that one that fails is made up for by the next. After three that are missing other processes forget this one.
 */
class Posting {
  readonly #author = Math.random().toString(36).slice(2) + Math.random().toString(36).slice(2)
  readonly #shared = new Set<Shared>()
  #timer: ReturnType<typeof setInterval> | undefined
  /** Only one at a time: a client may keep commands for as long as its server is away. */
  #isPosting = false

  constructor(private readonly board: Board) {}

  /** Posts `shared` too from now on, and starts the timer with the first. Returns a function that ends this. */
  add(shared: Shared): () => void {
    this.#shared.add(shared)
    this.#timer ??= setInterval(() => void this.#post().catch(() => {}), EVERY_MS)
    this.#timer.unref?.()
    return () => this.#remove(shared)
  }

  /** Posts `shared` no more. With the last one the timer ends too, so that nothing is posted. */
  #remove(shared: Shared): void {
    this.#shared.delete(shared)
    if (this.#shared.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /**
   * Posts one text with the counts of all limiters that are still open, to live for 30 s; not while the last post is unanswered. A
   * store that is out of reach is not reported here, because limiters report it and the next post makes up for it; any other failure
   * is a warning.
   */
  async #post(): Promise<void> {
    for (const shared of this.#shared) if (shared.limiter.isClosed) this.#remove(shared)
    if (this.#isPosting || this.#shared.size === 0) return
    this.#isPosting = true
    try {
      await this.board.post(this.#author, this.#text(), LIFE_MS)
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'STORE_FORBIDDEN') this.#warn(error)
    } finally {
      this.#isPosting = false
    }
  }

  /** The text to be posted: the counts of all limiters, with keys hashed if that was asked for, and the newest 50 denials. */
  #text(): string {
    const allShared = [...this.#shared]
    const posts = allShared.flatMap(({ limiter, counts, hash }) => {
      return counts ? { ...counts.post(limiter.name, hash), limits: limiter.policies?.map(limitOf) } : []
    })
    const denials = allShared.flatMap((shared) => shared.denials?.(MOST_DENIALS) ?? [])
    return textOf(posts, denials.toSorted((a, b) => b.at - a.at).slice(0, MOST_DENIALS))
  }

  /** Warns, through each limiter, that its top keys do not reach other processes. A limiter reports each code once. */
  #warn(error: unknown): void {
    const message = `the top keys of this process cannot be shared: ${String(error)}`
    for (const { limiter } of this.#shared) limiter.warn('TOP_KEYS_NOT_SHARED', message)
  }
}

/**
 * Posts a limiter's counts, or the newest of a list of denials, to the board of a store from now on, where other processes read
 * them. All that is posted to one store shares one text and one timer. Returns a function that ends this.
 * @throws {PolicyError} INVALID_OPTION for a store without boards.
 */
export function share(store: Store, shared: Shared): () => void {
  let posting = POSTINGS.get(store)
  if (!posting) POSTINGS.set(store, (posting = new Posting(boardOf(store))))
  shared.counts?.countDecisions()
  return posting.add(shared)
}

const POSTINGS = new WeakMap<Store, Posting>()
const EVERY_MS = 10_000
const LIFE_MS = 30_000
const MOST_DENIALS = 50
