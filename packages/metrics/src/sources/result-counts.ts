import type { Decision } from '@sluice/core'
import { BoundedLabels } from './bounded-labels.js'
import { RESULT_COUNT, resultName, resultOf } from './policy-counts.js'

/** Decisions by a label of each and by their result: the first `most` labels, then 'other'. */
export class ResultCounts {
  readonly #labels: BoundedLabels
  readonly #cells: number[] = []

  /** Counts the first `most` labels apart and all further ones as 'other', so that metrics stay few, whatever labels come. */
  constructor(most: number) {
    this.#labels = new BoundedLabels(most)
  }

  /** Counts a decision under a label, such as a tag, and its result. One list has a cell for each pair of these. */
  add(label: string, decision: Decision): void {
    const cell = this.#labels.numberFor(label) * RESULT_COUNT + resultOf(decision)
    this.#cells[cell] = (this.#cells[cell] ?? 0) + 1
  }

  /**
   * Calls `each` for every pair of label and result that has been counted, with the name of the result and the count. The
   * index of a cell is the label's number times the number of results, plus the result.
   */
  forEach(each: (label: string, result: string, count: number) => void): void {
    this.#cells.forEach((count, cell) => {
      const label = this.#labels.labels[Math.floor(cell / RESULT_COUNT)]!
      each(label, resultName(cell % RESULT_COUNT), count)
    })
  }
}
