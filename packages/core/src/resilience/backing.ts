import { inCommon } from '../values/contract.js'
import type { Policy } from '../algorithms/contract/policy.js'
import { memoryStore } from '../stores/memory/index.js'
import type { Store } from '../stores/store.js'
import { Denials } from './denials.js'
import { Line } from './line.js'

/** What all limiters of this process that use one store have in common. */
export class Backing {
  readonly line: Line
  readonly #store: Store
  /** For as long as a keyspace holds them. */
  readonly #denials = new Map<string, WeakRef<Denials>>()
  #sweepAt = LEAST_SWEPT
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
    const known = this.#denials.get(id)?.deref()
    if (known) return known
    const denials = new Denials(bounds, () => this.#store.now())
    this.#denials.set(id, new WeakRef(denials))
    if (this.#denials.size >= this.#sweepAt) this.#sweep()
    return denials
  }

  /** Drops the ids of states that no limiter holds any more, each time their number has doubled. */
  #sweep(): void {
    for (const [id, denials] of this.#denials) if (!denials.deref()) this.#denials.delete(id)
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#denials.size)
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

const LEAST_SWEPT = 256
