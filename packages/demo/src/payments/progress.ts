import { median } from '@sluice/harness/figures'
import type { Outcome, Who } from '@sluice/examples/payments/worker.js'

/** The reports of the workers so far. */
export class Progress {
  /** Payments of the batch, by worker. */
  readonly paid: number[]
  readonly failures: string[] = []
  /** Time from the wish to the answer, in milliseconds. */
  readonly tookMs: Record<Who, number[]> = { batch: [], customer: [] }

  /** @param shares payments of the batch that each worker has to make. */
  constructor(readonly shares: readonly number[]) {
    this.paid = shares.map(() => 0)
  }

  /** Counts one payment that a worker reports: as made, with the time that it took, or as failed. */
  add(worker: number, outcome: Outcome): void {
    if ('failed' in outcome) {
      this.failures.push(outcome.failed)
      return
    }
    this.tookMs[outcome.who].push(outcome.tookMs)
    if (outcome.who === 'batch') this.paid[worker]!++
  }

  /** The payments that the whole batch has. */
  get all(): number {
    return this.shares.reduce((sum, share) => sum + share, 0)
  }

  /** The payments of the batch that were made so far. */
  get allPaid(): number {
    return this.paid.reduce((sum, count) => sum + count, 0)
  }
}

/** The median of times in milliseconds, as text in seconds: `2.04 s`, or a dash while there are none. */
export function medianSeconds(times: readonly number[]): string {
  return times.length === 0 ? '-' : `${(median(times) / 1000).toFixed(2)} s`
}
