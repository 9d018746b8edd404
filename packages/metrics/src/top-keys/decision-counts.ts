import type { Decision } from '@sluice/core'
import { BoundedLabels } from '../sources/bounded-labels.js'
import { RESULT_COUNT, resultName, resultOf } from '../sources/policy-counts.js'

/** Decisions of one binding policy with one result: 'allowed', 'denied', or 'would_deny' in shadow mode. */
export interface DecisionCount {
  readonly policy: string
  readonly result: string
  readonly count: number
}

/** Decisions by binding policy and result in the last two generations, as `Generations` has them. */
export class DecisionCounts {
  readonly #policies = new BoundedLabels(MOST_POLICIES)
  #current: number[] = []
  #previous: number[] = []

  add(decision: Decision): void {
    const cell = this.#policies.numberOf(decision.policy) * RESULT_COUNT + resultOf(decision)
    this.#current[cell] = (this.#current[cell] ?? 0) + 1
  }

  turn(): void {
    this.#previous = this.#current
    this.#current = []
  }

  list(): readonly DecisionCount[] {
    return this.#policies.labels.flatMap((policy, number) =>
      Array.from({ length: RESULT_COUNT }, (_, result) => {
        const cell = number * RESULT_COUNT + result
        const count = (this.#current[cell] ?? 0) + (this.#previous[cell] ?? 0)
        return { policy, result: resultName(result), count }
      }).filter(({ count }) => count > 0),
    )
  }
}

/** Sums the counts of one policy and result. The most first. */
export function added(lists: readonly (readonly DecisionCount[])[]): readonly DecisionCount[] {
  const sums = new Map<string, DecisionCount>()
  for (const { policy, result, count } of lists.flat()) {
    const id = `${result} ${policy}`
    sums.set(id, { policy, result, count: count + (sums.get(id)?.count ?? 0) })
  }
  return [...sums.values()].toSorted((a, b) => b.count - a.count)
}

const MOST_POLICIES = 32
