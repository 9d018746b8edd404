import type { Policy } from '../algorithms/contract/policy.js'
import type { Keyspace, MaybePromise, Report, Store } from '../stores/store.js'
import { WeakValues } from '../values/weak-values.js'
import type { LeaseSettings } from './lease-options.js'
import { leaseTermsOf } from './lease-terms.js'
import { LeasedKeyspace } from './leased-keyspace.js'
import { Leases } from './leases.js'

/**
 * The store as a limiter with leases uses it. A store of this process answers every call at once, so it needs no leases and
 * decides by the declared policies.
 */
export function leasedStore(store: Store, settings: LeaseSettings | undefined): Store {
  return settings === undefined || store.local ? store : new LeasedStore(store, settings)
}

class LeasedStore implements Store {
  readonly #store: Store
  readonly #settings: LeaseSettings
  /** By the shapes of the policies: lists of equal shapes share their leases. Each is held by its keyspaces. */
  readonly #leases = new WeakValues<Leases>()

  constructor(store: Store, settings: LeaseSettings) {
    this.#store = store
    this.#settings = settings
  }

  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    const { ttl, size } = this.#settings
    const terms = leaseTermsOf(policies, ttl)
    const state = this.#store.keyspace(name, terms.booked, report)
    const leases = this.#leasesOf(terms.booked)
    return new LeasedKeyspace({ state, terms, leases, size, now: () => this.#store.now() })
  }

  now(): number {
    return this.#store.now()
  }

  get closed(): AbortSignal | undefined {
    return this.#store.closed
  }

  close(): MaybePromise<void> {
    for (const leases of this.#leases.values()) leases.clear()
    return this.#store.close()
  }

  #leasesOf(policies: readonly Policy[]): Leases {
    const id = policies.map(({ shape }) => shape).join('\n')
    const { ttl, maxKeys } = this.#settings
    return this.#leases.get(id, () => new Leases(ttl * 1000, maxKeys))
  }
}
