import { inCommon } from '../contract.js'
import type { Policy } from '../policy.js'
import { memoryStore } from '../stores/memory.js'
import type { Store } from '../stores/store.js'
import { Denials } from './denials.js'
import { Line } from './line.js'

/** What all limiters of this process that use one store have in common. */
export class Backing {
  readonly line: Line
  readonly #store: Store
  readonly #denials = new Map<string, Denials>()
  #local: Store | undefined

  constructor(store: Store) {
    this.#store = store
    this.line = new Line(store)
  }

  /** What decides in this process while the store does not. Made when it is needed, and kept for the next outage. */
  get local(): Store {
    return (this.#local ??= memoryStore({ maxKeys: LOCAL_KEYS, clock: this.#clock() }))
  }

  /** The denials of one state; undefined where the store's are not to be remembered. */
  denials(name: string, policies: readonly Policy[]): Denials | undefined {
    const bounds = this.#store.denialCache
    if (!bounds) return undefined
    const id = [name, ...policies.map(({ shape }) => shape)].join('\n')
    let denials = this.#denials.get(id)
    if (!denials) this.#denials.set(id, (denials = new Denials(bounds, () => this.#store.now())))
    return denials
  }

  /** The store's own, so that waits agree. It stands still when the store is closed, as the sweeper may be late. */
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

/** One for a store, whichever copies of this package use it: two would admit twice the limit in an outage. */
export function backingOf(store: Store): Backing {
  const backings = inCommon('backings', () => new WeakMap<Store, Backing>())
  let backing = backings.get(store)
  if (!backing) backings.set(store, (backing = new Backing(store)))
  return backing
}

/** At some 200 bytes a key this is 20 MB. */
const LOCAL_KEYS = 100_000
