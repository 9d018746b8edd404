import type { Keyspace, Policy, Store } from '@sluice/core'
import { StoreError } from '@sluice/core'
import { guard } from '@sluice/core/store'
import type { Report } from '../../../core/src/stores/store.js'

/** A store as if it were elsewhere, that can be taken away: limiters guard it, and may lease from it. */
export class UnsteadyStore implements Store {
  isDown = false
  readonly guard = guard
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The keyspace of the store behind this one, whose calls fail while it is down. */
  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    const state = this.#store.keyspace(name, policies, report)
    return {
      policies: state.policies,
      decide: (...call) => this.#reach(() => state.decide(...call)),
      confirm: (booking) => this.#reach(() => state.confirm(booking)),
      cancel: (booking) => this.#reach(() => state.cancel(booking)),
      correct: (change) => this.#reach(() => state.correct(change)),
    }
  }

  /** The instant on the store's clock, in microseconds. */
  now(): number {
    return this.#store.now()
  }

  /** Closes the store behind this one. */
  close() {
    return this.#store.close()
  }

  /** Carries out a call; while the store is down it fails. */
  async #reach<T>(act: () => T | Promise<T>): Promise<T> {
    if (this.isDown) throw new StoreError('STORE_UNAVAILABLE', 'as the row says')
    return act()
  }
}
