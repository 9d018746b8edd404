import { haveEqualNumbers, type Policy } from '../algorithms/contract/policy.js'
import { ExpiringMap } from '../values/expiring-map.js'
import { type Seen, Slice } from './slice.js'

/**
 * The slices of one limiter's keys. Only a key that was asked for within the last `ttl` gets one, so that a key without
 * traffic costs a unit a call, and a flood of new keys does not push out hot ones. No timers: what is over is thrown
 * away when there is no room.
 */
export class Slices {
  readonly #ttl: number
  readonly #most: number
  readonly #slices = new Map<string, Slice>()
  readonly #seen: ExpiringMap<Seen>
  #lookAgainAt = -Infinity

  /** `ttl` in microseconds. */
  constructor(ttl: number, most: number) {
    this.#ttl = ttl
    this.#most = most
    this.#seen = new ExpiringMap(most, ttl)
  }

  /** The slice of a hot key, or a note on one that is not; undefined where calls under this list have none. */
  find(policies: readonly Policy[], key: string, now: number): Slice | Seen | undefined {
    let slice = this.#slices.get(key)
    if (slice && slice.isCold(now)) {
      this.#slices.delete(key)
      slice = undefined
    }
    if (slice) {
      if (slice.policies !== policies && !haveEqualNumbers(slice.policies, policies)) return undefined
      slice.note(now)
      return slice
    }
    const seen = this.#seen.get(key)
    if (seen && now - seen.at < this.#ttl && this.#hasRoom(now)) {
      slice = new Slice(policies, this.#ttl, seen)
      slice.note(now)
      this.#slices.set(key, slice)
      return slice
    }
    const first = { at: now, known: 0 }
    this.#seen.set(key, first, now)
    return first
  }

  /** This process holds nothing of the key any more. */
  drop(key: string): void {
    this.#slices.get(key)?.drop()
    this.#slices.delete(key)
    this.#seen.delete(key)
  }

  clear(): void {
    for (const slice of this.#slices.values()) slice.drop()
    this.#slices.clear()
  }

  #hasRoom(now: number): boolean {
    if (this.#slices.size < this.#most) return true
    if (now < this.#lookAgainAt) return false
    this.#lookAgainAt = now + this.#ttl / 4
    for (const [key, slice] of this.#slices) if (slice.isCold(now)) this.#slices.delete(key)
    return this.#slices.size < this.#most
  }
}
