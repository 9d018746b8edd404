import type { CallOutcome } from '../values/permit.js'

/** A limit that follows what becomes of the calls, for each key by itself. `adaptive()` of @sluice/outbound makes one. */
export interface AdaptiveLimit {
  /** The limit of a key before its first call ends. */
  readonly initial: number
  /** Begins to follow the calls of one key. */
  follow(): FollowedLimit
}

/** The limit of one key. A `Detail` of each call is handed to it; of a semaphore's, whether it had to wait for its permit. */
export interface FollowedLimit<Detail = boolean> {
  /** A whole number, at least 1. */
  readonly limit: number
  /** Takes account of a call that took `ms` milliseconds. Returns why the limit may be another one now. */
  ended(ms: number, refused: boolean, detail: Detail): AdaptReason | undefined
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
export class KeyLimits<Detail> {
  /** By stored key. */
  readonly #followed = new Map<string, FollowedLimit<Detail>>()

  /**
   * Gives every key the limit `given.initial`: the most calls of the key that may run at once. With `given.follow` the limit is
   * adaptive: once the first call of a key has ended, the key's limit is recomputed by how each of its calls ends.
   */
  constructor(readonly given: { readonly initial: number; follow?(): FollowedLimit<Detail> }) {}

  /** The limit of a key now. */
  of(key: string): number {
    return this.#followed.get(key)?.limit ?? this.given.initial
  }

  /**
   * Recomputes the adaptive limit of a key after one of its calls has ended, which took `ms` milliseconds and was served or refused.
   * Returns how the limit has changed; undefined if it has not, is not adaptive, or the call `failed` for a reason of its own, which
   * says nothing about the limit. `detail` is what the limit wants to know besides, such as whether the call had to wait. At most
   * 1,000 keys have limits of their own; beyond that the oldest one is forgotten.
   */
  ended(key: string, outcome: CallOutcome, ms: number, detail: Detail): LimitChange | undefined {
    const followed = this.#followed.get(key) ?? this.given.follow?.()
    if (!followed || outcome === 'failed') return undefined
    const from = this.of(key)
    const isNewKey = !this.#followed.has(key)
    if (isNewKey && this.#followed.size >= MOST_FOLLOWED) {
      const oldest = this.#followed.keys().next().value!
      this.#followed.delete(oldest)
    }
    this.#followed.set(key, followed)
    const reason = followed.ended(ms, outcome === 'refused', detail)
    return reason && followed.limit !== from ? { from, limit: followed.limit, reason } : undefined
  }
}

/** The key that was first is forgotten, and begins anew. */
const MOST_FOLLOWED = 1000
