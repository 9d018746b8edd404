import { type Keyspace, memoryStore, type Policy, type Store, StoreError } from '@sluice/core'
import { guard } from '@sluice/core/store'

/** A store that answers later, as one elsewhere does, or fails. */
export class LaterStore implements Store {
  isFailing = false
  readonly guard = guard
  readonly denialCache = { maxAge: 1_000_000, maxKeys: 100 }
  readonly #memory: Store

  constructor(clock: () => number) {
    this.#memory = memoryStore({ clock })
  }

  keyspace(name: string, policies: readonly Policy[], report: Parameters<Store['keyspace']>[2]): Keyspace {
    const state = this.#memory.keyspace(name, policies, report)
    const later = <T>(act: () => T): Promise<Awaited<T>> =>
      this.isFailing
        ? Promise.reject(new StoreError('STORE_OOM', 'as the test says'))
        : new Promise((resolve) => setImmediate(() => resolve(act() as Awaited<T>)))
    return {
      policies: state.policies,
      decide: (...call) => later(() => state.decide(...call)),
      confirm: (booking) => later(() => state.confirm(booking)),
      cancel: (booking) => later(() => state.cancel(booking)),
      correct: (change) => later(() => state.correct(change)),
    }
  }

  now(): number {
    return this.#memory.now()
  }

  async close(): Promise<void> {
    await this.#memory.close()
  }
}
