import type { LimitAdapted } from './semaphore-events.js'

/** A limit that follows what becomes of the calls, for each key by itself. `adaptive()` of @sluice/outbound makes one. */
export interface AdaptiveLimit {
  /** The limit of a key before its first call ends. */
  readonly initial: number
  /** Begins to follow the calls of one key. */
  follow(): FollowedLimit
}

/** The limit of one key. */
export interface FollowedLimit {
  /** A whole number, at least 1. */
  readonly limit: number
  /**
   * Takes account of a call that held its permit for `ms` milliseconds. `waited`: whether it had to wait for the permit.
   * Returns why the limit has changed; undefined if it has not.
   */
  ended(ms: number, refused: boolean, waited: boolean): string | undefined
}

/** The limits of a semaphore, by stored key. */
export class KeyLimits {
  readonly #followed = new Map<string, FollowedLimit>()

  /** The limit of all keys, or what follows the calls of each. */
  constructor(private given: number | AdaptiveLimit) {}

  /** The limit of keys that are not followed. */
  get initial(): number {
    return typeof this.given === 'number' ? this.given : this.given.initial
  }

  /** Whether keys are followed. */
  get isAdaptive(): boolean {
    return typeof this.given !== 'number'
  }

  /** The limit of a key now. */
  of(key: string): number {
    return this.#followed.get(key)?.limit ?? this.initial
  }

  /** Sets one limit for all keys, and follows none. */
  fix(limit: number): void {
    this.given = limit
    this.#followed.clear()
  }

  /** Returns what a call that has ended changes; undefined if that is nothing. */
  ended(
    key: string,
    ...call: Parameters<FollowedLimit['ended']>
  ): Pick<LimitAdapted, 'limit' | 'from' | 'reason'> | undefined {
    if (typeof this.given === 'number') return undefined
    let followed = this.#followed.get(key)
    if (!followed) {
      if (this.#followed.size >= MOST_FOLLOWED) this.#followed.delete(this.#followed.keys().next().value!)
      this.#followed.set(key, (followed = this.given.follow()))
    }
    const from = followed.limit
    const reason = followed.ended(...call)
    return reason === undefined ? undefined : { from, limit: followed.limit, reason }
  }
}

/** The key that was first is forgotten, and begins anew. */
const MOST_FOLLOWED = 1000
