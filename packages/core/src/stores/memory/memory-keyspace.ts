import type { Policy } from '../../algorithms/contract/policy.js'
import type { Answer, Ask, Booking, Correction, Keyspace } from '../store.js'
import type { Table } from './table.js'

/** A table as one list of policies sees it. Lists of equal shapes share the table. */
export class MemoryKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  /** The number of the list in the table. */
  tier: number
  readonly #open: () => Table
  #table: Table

  /** `open` gives the table of the state, now and after it was dropped. */
  constructor(open: () => Table, policies: readonly Policy[]) {
    this.#open = open
    this.#table = open()
    this.policies = policies
    this.tier = this.#table.tiers.numberOf(policies)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    return this.#held().decide(this, ask, key, cost, maxWait)
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    return this.#held().confirm(booking)
  }

  cancel(booking: Booking): boolean {
    return this.#held().cancel(this.policies, booking)
  }

  correct(change: Correction): number {
    return this.#held().correct(this, change)
  }

  #held(): Table {
    if (this.#table.isDropped) {
      this.#table = this.#open()
      this.tier = this.#table.tiers.numberOf(this.policies)
    }
    return this.#table
  }
}
