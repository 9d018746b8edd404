import type { Policy } from '../algorithms/contract/policy.js'
import type { Keyspace, MaybePromise, Report, Store } from '../stores/store.js'
import { type LeaseOptions, type ParsedLeaseOptions, parseLeaseOptions } from './lease-options.js'
import { LeasedKeyspace } from './leased-keyspace.js'
import { Slices } from './slices.js'
import { termsOf } from './terms.js'

/**
 * The store as a limiter with leases uses it. A store of this process has nothing to lease, as every call is answered at
 * once: it decides each call by the policies as they are declared.
 * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION.
 */
export function leased(store: Store, given: LeaseOptions | undefined): Store {
  if (given === undefined) return store
  const options = parseLeaseOptions(given)
  return store.local ? store : new LeasedStore(store, options)
}

class LeasedStore implements Store {
  readonly #store: Store
  readonly #options: ParsedLeaseOptions
  /** By state: calls under other limits of equal shapes use the same. */
  readonly #slices = new Map<string, Slices>()

  constructor(store: Store, options: ParsedLeaseOptions) {
    this.#store = store
    this.#options = options
  }

  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    const { ttlMs, size } = this.#options
    const terms = termsOf(policies, ttlMs)
    const state = this.#store.keyspace(name, terms.booked, report)
    const slices = this.#slicesOf(terms.booked)
    return new LeasedKeyspace({ state, terms, slices, size, now: () => this.#store.now() })
  }

  now(): number {
    return this.#store.now()
  }

  close(): MaybePromise<void> {
    for (const slices of this.#slices.values()) slices.clear()
    return this.#store.close()
  }

  #slicesOf(policies: readonly Policy[]): Slices {
    const id = policies.map(({ shape }) => shape).join('\n')
    let slices = this.#slices.get(id)
    if (!slices)
      this.#slices.set(id, (slices = new Slices(this.#options.ttlMs * 1000, this.#options.maxKeys)))
    return slices
  }
}
