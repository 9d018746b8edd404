import type { Policy } from '../../policy.js'
import type { Answer, Ask, Booking, Correction, Keyspace } from '../store.js'
import type { Table } from './table.js'

/** A table as one list of policies sees it. Lists of equal shapes share the table. */
export class MemoryKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  /** The number of the list in the table. */
  readonly tier: number
  readonly #table: Table

  constructor(table: Table, policies: readonly Policy[]) {
    this.#table = table
    this.policies = policies
    this.tier = table.tiers.numberOf(policies)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    return this.#table.decide(this, ask, key, cost, maxWait)
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    return this.#table.confirm(booking)
  }

  cancel(booking: Booking): boolean {
    return this.#table.cancel(this.policies, booking)
  }

  correct(change: Correction): number {
    return this.#table.correct(this, change)
  }
}
