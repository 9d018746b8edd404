import { haveEqualNumbers, type Policy } from '../algorithms/contract/policy.js'
import { ExpiringMap } from '../values/expiring-map.js'
import { copiedText } from '../values/key.js'
import { type ColdKey, Lease } from './lease.js'

/**
 * The leases of one limiter's keys. Only a key that was called within the last `ttl` gets one. A key with little traffic
 * therefore costs one unit per call, and a flood of new keys does not displace hot ones. There are no timers: leases that
 * are over are removed when there is no room.
 */
export class Leases {
  readonly #leases = new Map<string, Lease>()
  /** The first calls of keys that have no lease, each for one ttl: a second call within it begins the lease. */
  readonly #coldKeys: ExpiringMap<ColdKey>
  #nextSweepAt = -Infinity

  /**
   * Makes the leases of a limiter's keys, none yet: a lease is units of one key that were charged in advance. At most `most` keys
   * have one. `#coldKeys` remembers the first call of each other key for `ttl` microseconds, as a second call within that time
   * begins the key's lease.
   */
  constructor(
    private readonly ttl: number,
    private readonly most: number,
  ) {
    this.#coldKeys = new ExpiringMap(most, ttl)
  }

  /**
   * Notes that a key is called at `now`, and returns the key's lease. The second call within `ttl` microseconds begins a lease,
   * unless there are too many. A key without one is cold: the result is then a note of this call (ColdKey). It is undefined if the
   * key has a lease under other limits than those of `policies`, such as those of another tier.
   */
  findOrBegin(policies: readonly Policy[], key: string, now: number): Lease | ColdKey | undefined {
    let lease = this.#leases.get(key)
    if (lease && lease.isCold(now)) {
      this.#leases.delete(key)
      lease = undefined
    }
    if (lease) {
      if (lease.policies !== policies && !haveEqualNumbers(lease.policies, policies)) return undefined
      lease.recordCall(now)
      return lease
    }
    const coldKey = this.#coldKeys.get(key)
    if (coldKey && now - coldKey.calledAt < this.ttl && this.#hasRoom(now)) {
      lease = new Lease(policies, this.ttl, coldKey)
      lease.recordCall(now)
      this.#leases.set(copiedText(key), lease)
      return lease
    }
    const first = { calledAt: now, remaining: 0 }
    this.#coldKeys.set(key, first, now)
    return first
  }

  /** Ends the lease of a key, so that not even a charge in flight fills it, and forgets that the key was called. */
  drop(key: string): void {
    this.#leases.get(key)?.drop()
    this.#leases.delete(key)
    this.#coldKeys.delete(key)
  }

  /** Ends the leases of all keys, as the limiter closes. */
  clear(): void {
    for (const lease of this.#leases.values()) lease.drop()
    this.#leases.clear()
  }

  /**
   * Whether one more lease may be held at `now`. If there are `most`, those whose keys are no longer called are removed first,
   * but at most four times within a ttl, as that looks at all leases.
   */
  #hasRoom(now: number): boolean {
    if (this.#leases.size < this.most) return true
    if (now < this.#nextSweepAt) return false
    this.#nextSweepAt = now + this.ttl / 4
    for (const [key, lease] of this.#leases) if (lease.isCold(now)) this.#leases.delete(key)
    return this.#leases.size < this.most
  }
}
