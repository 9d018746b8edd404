import { type Board, type Limiter, PolicyError, type Store, StoreError } from '@sluice/core'
import type { KeyCounts } from './key-counts.js'
import type { KeyHash } from './key-hash.js'
import { textOf } from './post.js'

/**
 * The board of a store on which processes leave each other their top keys.
 * @throws {PolicyError} INVALID_OPTION for a store without boards.
 */
export function boardOf(store: Store): Board {
  if (typeof store?.board === 'function') return store.board('top-keys')
  throw new PolicyError(
    'INVALID_OPTION',
    'the store of a fleet must be one with a board: a redisStore or memoryStore; a machineStore has none',
  )
}

/** A limiter whose keys are counted, and what other processes may see of its keys. */
export interface Shared {
  readonly limiter: Limiter
  readonly counts: KeyCounts
  readonly hash: KeyHash
}

/**
 * Writes what this process has counted to the board of one store: one text every 10 s for all limiters. Each replaces the one
 * before, so that one that fails is made up for by the next. After three that are missing other processes forget this one.
 */
class Posting {
  readonly #author = Math.random().toString(36).slice(2) + Math.random().toString(36).slice(2)
  readonly #shared = new Set<Shared>()
  #timer: ReturnType<typeof setInterval> | undefined
  /** Only one at a time: a client may keep commands for as long as its server is away. */
  #isPosting = false

  constructor(private readonly board: Board) {}

  /** Posts the counts of one more limiter from now on. Returns a function that ends that. */
  add(shared: Shared): () => void {
    this.#shared.add(shared)
    this.#timer ??= setInterval(() => void this.#post(), EVERY_MS)
    this.#timer.unref?.()
    return () => this.#remove(shared)
  }

  /** Ends the posts of one limiter, and the timer with the last. */
  #remove(shared: Shared): void {
    this.#shared.delete(shared)
    if (this.#shared.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /**
   * Posts the counts of all limiters that are still open, unless the last post has not been answered yet. A store that
   * is out of reach is no news here, as limiters report it; a failure that no later post makes up for is a warning.
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

  /** The counts of all limiters as one text. */
  #text(): string {
    const posts = [...this.#shared].map(({ limiter, counts, hash }) => counts.post(limiter.name, hash))
    return textOf(posts)
  }

  /** Warns, through each limiter, that its top keys do not reach other processes. */
  #warn(error: unknown): void {
    const message = `the top keys of this process cannot be shared: ${String(error)}`
    for (const { limiter } of this.#shared) limiter.warn('TOP_KEYS_NOT_SHARED', message)
  }
}

/**
 * Posts a limiter's counts to a store's board from now on. Returns a function that ends that.
 * @throws {PolicyError} INVALID_OPTION for a store without boards.
 */
export function share(store: Store, shared: Shared): () => void {
  let posting = POSTINGS.get(store)
  if (!posting) POSTINGS.set(store, (posting = new Posting(boardOf(store))))
  return posting.add(shared)
}

const POSTINGS = new WeakMap<Store, Posting>()
const EVERY_MS = 10_000
const LIFE_MS = 30_000
