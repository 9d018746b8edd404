import type { Policy } from '../../algorithms/contract/policy.js'
import type { Penalty } from '../penalty.js'

/** A list of policies of a keyspace, its number in the table, and the keyspace's penalty. */
export interface PolicyList {
  readonly policies: readonly Policy[]
  readonly number: number
  readonly penalty: Penalty | undefined
}

/**
 * The lists of policies under which the keys of a table are decided, by number, so that each key can be judged by the
 * limits it was last decided with. Beyond 8,191 lists, the smallest limits stand for the others.
 */
export class PolicyLists {
  /** Whether keys were decided under more than one list. */
  areSeveral = false
  readonly #lists: (readonly Policy[])[] = []
  readonly #numbers = new Map<string, number>()

  /** For each position, the policy of the smallest limit seen: a key that is full under these is full under any list. */
  constructor(public smallest: readonly Policy[]) {}

  /**
   * Makes the list for calls under these policies and this penalty, numbered for the table. Lists of equal limits and capacities
   * share a number.
   */
  open(policies: readonly Policy[], penalty?: Penalty): PolicyList {
    return { policies, number: this.#numberFor(policies), penalty }
  }

  /** The list of policies with this number; for the number that many lists share, the smallest limits of all. */
  at(number: number): readonly Policy[] {
    return this.#lists[number] ?? this.smallest
  }

  /**
   * Returns the number of a list of policies, which all lists of equal limits and capacities share. A row notes by it which list
   * its key was last decided with. A new list gets the next number. The row has 13 bits for it, so beyond 8,191 lists all others
   * share OTHERS. A new list also updates `smallest`, which has at each position the policy of the smallest limit so far, because
   * a key that is full under these is full under any list.
   */
  #numberFor(policies: readonly Policy[]): number {
    const id = policies.map(({ limit, capacity }) => `${limit}/${capacity}`).join()
    const known = this.#numbers.get(id)
    if (known !== undefined) return known
    if (this.smallest.some(({ limit }, i) => limit > policies[i]!.limit)) {
      this.smallest = this.smallest.map((small, i) =>
        small.limit <= policies[i]!.limit ? small : policies[i]!,
      )
    }
    if (this.#lists.length === OTHERS) return OTHERS
    this.#numbers.set(id, this.#lists.length)
    this.areSeveral = this.#lists.length > 0
    return this.#lists.push(policies) - 1
  }
}

/** The largest number that fits into 13 bits. */
const OTHERS = 2 ** 13 - 1
