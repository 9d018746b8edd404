import type { Policy } from '../algorithms/contract/policy.js'
import { memoryStore } from '../stores/memory/index.js'
import type { Store } from '../stores/store.js'
import { inCommon } from '../values/contract.js'
import { WeakValues } from '../values/weak-values.js'
import { RecoveryQueue } from './booking-until-max-wait.js'
import { DenialCache } from './denial-cache.js'
import { StoreChannel } from './store-channel.js'

/** The state that all limiters of this process share if they use one store. */
export class SharedStoreState {
  readonly channel: StoreChannel
  readonly recovery: RecoveryQueue
  readonly #store: Store
  /** Each is held by its keyspaces. */
  readonly #denialCaches = new WeakValues<DenialCache>()
  #local: Store | undefined

  constructor(store: Store) {
    this.#store = store
    this.channel = new StoreChannel(store)
    this.recovery = new RecoveryQueue(this.channel)
  }

  /** The memory store that decides while the store does not. Made in the first outage, and kept for the next. */
  get local(): Store {
    return (this.#local ??= memoryStore({ maxKeys: LOCAL_KEYS, clock: this.#clock() }))
  }

  /** The denial cache of one state; undefined if the store's denials are not to be cached. */
  denialCache(name: string, policies: readonly Policy[]): DenialCache | undefined {
    const bounds = this.#store.denialCache
    if (!bounds) return undefined
    const id = [name, ...policies.map(({ shape }) => shape)].join('\n')
    return this.#denialCaches.get(id, () => new DenialCache(bounds, this.#store))
  }

  /** The store's clock, so that waits agree. It stops when the store is closed, because the sweeper may still run. */
  #clock(): () => number {
    let latest = 0
    return () => {
      try {
        latest = this.#store.now()
      } catch {
        // closed
      }
      return latest
    }
  }
}

/** One per store, shared by all copies of this package: two would admit twice the limit in an outage. */
export function sharedStateOf(store: Store): SharedStoreState {
  const states = inCommon('shared-store-states', () => new WeakMap<Store, SharedStoreState>())
  let state = states.get(store)
  if (!state) states.set(store, (state = new SharedStoreState(store)))
  return state
}

/** At some 200 bytes a key this is 20 MB. */
const LOCAL_KEYS = 100_000
