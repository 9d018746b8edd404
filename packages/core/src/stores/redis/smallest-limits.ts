import type { Policy } from '../../algorithms/contract/policy.js'

/**
 * The smallest limit of each policy that this process has seen, per keyspace. Usage recorded under a higher tier must still
 * count when a lower tier asks, so a key's TTL covers a full refill at these limits. A store has one of these, because
 * each list of policies has a keyspace object of its own.
 */
export class SmallestLimits {
  readonly #smallest = new Map<string, readonly number[]>()
  readonly #most: number
  /** Number of times a smaller limit was seen; until it changes, `below` returns the same. */
  changes = 0

  /** Remembers at most `most` keyspaces; beyond that, the one observed first is forgotten. */
  constructor(most = Infinity) {
    this.#most = most
  }

  /** Takes the limits of a list into account. */
  observe(keyspace: string, policies: readonly Policy[]): void {
    const known = this.#smallest.get(keyspace)
    if (known && policies.every(({ limit }, i) => limit >= known[i]!)) return
    const smallest = policies.map(({ limit }, i) => Math.min(limit, known?.[i] ?? limit))
    this.#smallest.set(keyspace, smallest)
    if (this.#smallest.size > this.#most) this.#smallest.delete(this.#smallest.keys().next().value!)
    this.changes++
  }

  /** The smallest limits of the keyspace, in the order of the policies; undefined if none is below theirs. */
  below(keyspace: string, policies: readonly Policy[]): readonly number[] | undefined {
    this.observe(keyspace, policies)
    const smallest = this.#smallest.get(keyspace)!
    return policies.some(({ limit }, i) => limit > smallest[i]!) ? smallest : undefined
  }
}
