import type { Policy } from '../../algorithms/contract/policy.js'

/**
 * The smallest limits that this process has met in each keyspace. What a call under a faster tier consumed has still to
 * count when a slower one asks, so keys live until they are full again under these. One for a store, as each list of
 * policies has a keyspace object of its own.
 */
export class Tiers {
  readonly #smallest = new Map<string, readonly number[]>()
  readonly #most: number
  #changes = 0

  /** Of so many keyspaces: beyond them those go that were met first, until they are met again. */
  constructor(most = Infinity) {
    this.#most = most
  }

  /** How often a smaller limit was met: until it changes, `below` gives the same again. */
  get changes(): number {
    return this.#changes
  }

  meet(keyspace: string, policies: readonly Policy[]): void {
    const known = this.#smallest.get(keyspace)
    if (known && policies.every(({ limit }, i) => limit >= known[i]!)) return
    const smallest = policies.map(({ limit }, i) => Math.min(limit, known?.[i] ?? limit))
    this.#smallest.set(keyspace, smallest)
    if (this.#smallest.size > this.#most) this.#smallest.delete(this.#smallest.keys().next().value!)
    this.#changes++
  }

  /** The smallest limits of the keyspace, in the order of the policies; undefined where none is below theirs. */
  below(keyspace: string, policies: readonly Policy[]): readonly number[] | undefined {
    this.meet(keyspace, policies)
    const smallest = this.#smallest.get(keyspace)!
    return policies.some(({ limit }, i) => limit > smallest[i]!) ? smallest : undefined
  }
}
