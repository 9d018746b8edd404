import { memoryStore, type Policy } from '../../src/index.js'
import type { DatedCharge, Keyspace } from '../../src/stores/store.js'

const SECOND = 1_000_000

/** What one key owes under one policy, or under several sets of its numbers. Instants in seconds. */
export class Tab {
  #now = 0
  readonly #keyspaces: readonly Keyspace[]
  readonly #charges: DatedCharge[] = []

  constructor(...tiers: readonly Policy[]) {
    const store = memoryStore({ clock: () => this.#now })
    this.#keyspaces = tiers.map((policy) => store.keyspace('tab', [policy], () => {}))
  }

  at(seconds: number): void {
    this.#now = Math.round(seconds * SECOND)
  }

  /** Units owed after a charge, in whole units, rounded up. */
  charge(seconds: number, cost: number, tier = 0): number {
    this.at(seconds)
    const { at, now, reason } = this.#keyspaces[tier]!.decide('consume', 'k', cost, 0) as never
    expect(reason).toBeUndefined()
    this.#charges.push({ at, cost, decidedAt: now })
    return this.owed(tier)
  }

  /** A charge that the state does not hold, as a replica that took over had not heard of it. */
  lose(seconds: number, cost: number): void {
    const at = seconds * SECOND
    this.#charges.push({ at, cost, decidedAt: at })
  }

  /** The units that took effect when units of the n-th charge were given back. */
  release(seconds: number, n: number, units: number, tier = 0): number {
    this.at(seconds)
    const charge = this.#charges[n]!
    return this.#keyspaces[tier]!.correct({ kind: 'release', key: 'k', charge, units }) as number
  }

  /** The units that took effect as of now. */
  correct(kind: 'charge' | 'refund', cost: number): number {
    return this.#keyspaces[0]!.correct({ kind, key: 'k', cost }) as number
  }

  owed(tier = 0): number {
    const keyspace = this.#keyspaces[tier]!
    const { remaining } = keyspace.decide('peek', 'k', 0, 0) as { remaining: number }
    return keyspace.policies[0]!.capacity - remaining
  }

  /** The instant at which nothing is owed. */
  paidAt(): number {
    const { resetAt } = this.#keyspaces[0]!.decide('peek', 'k', 0, 0) as { resetAt: number }
    return resetAt / SECOND
  }
}
