import type { Decision } from '@sluice/core'
import { ResultCounts } from '../sources/result-counts.js'

/** Decisions of one binding policy with one result: 'allowed', 'denied', or 'would_deny' in shadow mode. */
export interface DecisionCount {
  readonly policy: string
  readonly result: string
  readonly count: number
}

/** Decisions by binding policy and result in the last two generations, as `Generations` has them. */
export class DecisionCounts {
  #current = new ResultCounts(MOST_POLICIES)
  #previous = new ResultCounts(MOST_POLICIES)

  /** Counts a decision in the current generation, under its binding policy and its result. */
  add(decision: Decision): void {
    this.#current.add(decision.policy, decision)
  }

  /**
   * Begins to count anew; called each half of the window over which keys are counted. The counts so far are kept as the previous
   * generation and are listed together with the new ones, so that the figures do not restart at 0. Those of the generation before
   * are dropped, so that nothing older than the window is listed.
   */
  beginGeneration(): void {
    this.#previous = this.#current
    this.#current = new ResultCounts(MOST_POLICIES)
  }

  /** The counts of the current and the previous generation together, the largest first. */
  list(): readonly DecisionCount[] {
    const counts: DecisionCount[] = []
    for (const generation of [this.#current, this.#previous])
      generation.forEach((policy, result, count) => counts.push({ policy, result, count }))
    return summed(counts)
  }
}

/** Adds up the counts of the same policy and result. Returns the sums, the largest first. */
export function summed(counts: readonly DecisionCount[]): readonly DecisionCount[] {
  const sums = new Map<string, DecisionCount>()
  for (const { policy, result, count } of counts) {
    const id = `${result} ${policy}`
    sums.set(id, { policy, result, count: count + (sums.get(id)?.count ?? 0) })
  }
  return [...sums.values()].toSorted((a, b) => b.count - a.count)
}

const MOST_POLICIES = 32
