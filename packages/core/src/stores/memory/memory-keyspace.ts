import type { Policy } from '../../algorithms/contract/policy.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Booking, Correction, Keyspace } from '../store.js'
import type { PolicyList } from './policy-lists.js'
import type { Table } from './table.js'

/** A table under one list of policies. Lists of equal shapes share the table. */
export class MemoryKeyspace implements Keyspace, PolicyList {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  listNumber: number
  readonly #open: () => Table
  #table: Table

  /** `open` returns the table, now and again after it was dropped. */
  constructor(open: () => Table, policies: readonly Policy[], penalty: Penalty | undefined) {
    this.#open = open
    this.#table = open()
    this.policies = policies
    this.penalty = penalty
    this.listNumber = this.#table.lists.numberOf(policies)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const table = this.#table.isDropped ? this.#openTable() : this.#table
    return table.decide(this, ask, key, cost, maxWait)
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    return this.#openTable().confirm(booking)
  }

  cancel(booking: Booking): boolean {
    return this.#openTable().cancel(this.policies, booking)
  }

  correct(change: Correction): number {
    return this.#openTable().correct(this, change)
  }

  #openTable(): Table {
    if (this.#table.isDropped) {
      this.#table = this.#open()
      this.listNumber = this.#table.lists.numberOf(this.policies)
    }
    return this.#table
  }
}
