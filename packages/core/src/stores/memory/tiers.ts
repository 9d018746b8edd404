import { haveEqualNumbers, type Policy } from '../../algorithms/contract/policy.js'

/**
 * The lists of policies under which the keys of a table are decided, by number, so that each key can be judged by the
 * limits it was last decided with. Beyond 8,191 lists the smallest limits stand in for the others.
 */
export class Tiers {
  /** Per policy the smallest limit seen: a key is full again for certain when it is full under these. */
  slowest: readonly Policy[]
  readonly #lists: (readonly Policy[])[] = []
  readonly #numbers = new Map<string, number>()

  constructor(policies: readonly Policy[]) {
    this.slowest = policies
  }

  /** The number of a list, which is that of all lists of equal limits and capacities. */
  numberOf(policies: readonly Policy[]): number {
    const id = policies.map(({ limit, capacity }) => `${limit}/${capacity}`).join()
    const known = this.#numbers.get(id)
    if (known !== undefined) return known
    if (this.slowest.some(({ limit }, i) => limit > policies[i]!.limit)) {
      this.slowest = this.slowest.map((slow, i) => (slow.limit <= policies[i]!.limit ? slow : policies[i]!))
    }
    if (this.#lists.length === OTHERS) return OTHERS
    this.#numbers.set(id, this.#lists.length)
    return this.#lists.push(policies) - 1
  }

  list(number: number): readonly Policy[] {
    return this.#lists[number] ?? this.slowest
  }

  /** Whether a key that is full again under a list is so under any. */
  isSlowest(policies: readonly Policy[]): boolean {
    return haveEqualNumbers(policies, this.slowest)
  }
}

/** The largest number that fits into 13 bits. */
const OTHERS = 2 ** 13 - 1
