import type { Habits, HabitsByCaller } from '../logs/habits.js'
import { timeOf } from './basis.js'

/** The denials of a policy or a limiter. */
export interface Figures {
  readonly denied: number
  readonly callersHit: number
  /** From the first of denials in a row until the last of them would have passed; null: a call never passes. */
  readonly longestLockOutMs: number | null
  /** The callers with most denials. */
  readonly worst: readonly HitCaller[]
}

export interface HitCaller {
  readonly key: string
  readonly denied: number
  /** The first denial, as RFC 3339. */
  readonly first: string | null
  readonly longestLockOutMs: number | null
  /** All calls of the caller, from `suggest`. */
  readonly calls?: number | undefined
  /** From `suggest`, where enough of his calls are known. */
  readonly habits?: Habits | undefined
}

const NOT_LOCKED = -1

/** The denials of one caller. */
export class Hit {
  denied = 0
  first = 0
  /** The longest lock-out in microseconds. */
  longest = 0
  #lockedSince = NOT_LOCKED

  /** `calls` are all calls of the caller, where that is known. */
  constructor(readonly calls?: number) {}

  /** Notes that a call of the caller was allowed, which ends a lock-out. */
  addAllowed(): void {
    this.#lockedSince = NOT_LOCKED
  }

  /**
   * Counts a denial at the instant `at`; the call would pass at the instant `until`, both in microseconds. A lock-out lasts from the
   * first of several denials in a row until then, and the longest is kept. The wait is rounded up to milliseconds, as decisions
   * report it.
   */
  addDenial(at: number, until: number): void {
    if (this.denied++ === 0) this.first = at
    if (this.#lockedSince === NOT_LOCKED) this.#lockedSince = at
    this.longest = Math.max(this.longest, at - this.#lockedSince + Math.ceil((until - at) / 1000) * 1000)
  }
}

/** Sums up the denials of callers. */
export class Tally {
  denied = 0
  callersHit = 0
  #longest = 0
  #worst: readonly { readonly key: string; readonly hit: Hit }[] = []

  /** Adds the denials of one caller to the sums, and lists him if he is one of the five with most denials so far. */
  add(key: string, hit: Hit): void {
    this.denied += hit.denied
    this.callersHit++
    this.#longest = Math.max(this.#longest, hit.longest)
    if (this.#worst.length === MOST_LISTED && hit.denied <= this.#worst.at(-1)!.hit.denied) return
    const withCaller = [...this.#worst, { key, hit }].sort((one, other) => other.hit.denied - one.hit.denied)
    this.#worst = withCaller.slice(0, MOST_LISTED)
  }

  /**
   * The sums of all callers' denials, and the five callers with most denials, with their habits if these are known. Lock-outs are in
   * milliseconds; null is one that never ends.
   */
  report(habitsByCaller?: HabitsByCaller): Figures {
    const worst = this.#worst.map(({ key, hit: { first, longest, ...counts } }): HitCaller => {
      const habits = habitsByCaller?.of(key)
      return {
        key,
        ...counts,
        first: timeOf(first),
        longestLockOutMs: lockOutMs(longest),
        ...(habits && { habits }),
      }
    })
    const { denied, callersHit } = this
    return { denied, callersHit, longestLockOutMs: lockOutMs(this.#longest), worst }
  }
}

const MOST_LISTED = 5

/** A lock-out in microseconds as reports have it: in milliseconds, rounded up; null for one that never ends. */
const lockOutMs = (us: number): number | null => (us === Infinity ? null : Math.ceil(us / 1000))
