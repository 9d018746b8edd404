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
   * Returns why the limit may be another one now.
   */
  ended(ms: number, refused: boolean, waited: boolean): AdaptReason | undefined
}

/** Why a limit changed: calls were served under it, refused, or slower than at the baseline; or the baseline is measured. */
export type AdaptReason = 'served' | 'refused' | 'latency' | 'baseline'

/** How the limit of a key changed. */
export interface LimitChange {
  readonly limit: number
  /** The limit before. */
  readonly from: number
  readonly reason: AdaptReason
}

/** The limits of keys: one for all of them, or what follows the calls of each. */
export class KeyLimits<Followed extends Pick<FollowedLimit, 'limit'>> {
  /** By stored key. */
  readonly followed = new Map<string, Followed>()

  constructor(readonly given: { readonly initial: number; follow?(): Followed }) {}

  /** The limit of a key now. */
  of(key: string): number {
    return (this.followed.get(key) ?? { limit: this.given.initial }).limit
  }

  /** Lets what follows a key take account of a call. Returns how the limit has changed; undefined if it has not. */
  ended(key: string, adapt: (followed: Followed) => AdaptReason | undefined): LimitChange | undefined {
    const followed = this.followed.get(key) ?? this.given.follow?.()
    if (!followed) return undefined
    const from = this.of(key)
    if (this.followed.size >= MOST_FOLLOWED && !this.followed.has(key)) {
      this.followed.delete(this.followed.keys().next().value!)
    }
    this.followed.set(key, followed)
    const reason = adapt(followed)
    return reason && followed.limit !== from ? { from, limit: followed.limit, reason } : undefined
  }
}

/** The key that was first is forgotten, and begins anew. */
const MOST_FOLLOWED = 1000
