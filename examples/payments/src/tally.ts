import type { News } from './worker.js'

/** What the workers have told so far. */
export class Tally {
  /** Payments of the batch, by worker. */
  readonly paid: number[]
  readonly failures: string[] = []
  /** How long payments took from the wish to the answer, in milliseconds. */
  readonly tookMs = { batch: [] as number[], customer: [] as number[] }
  held = 0

  constructor(readonly shares: readonly number[]) {
    this.paid = shares.map(() => 0)
  }

  hear(news: News): void {
    if (news.type === 'paid') {
      this.tookMs[news.who].push(news.tookMs)
      if (news.who === 'batch') this.paid[news.worker]!++
    } else if (news.type === 'failed') this.failures.push(news.message)
    else if (news.type === 'event' && news.event === 'held') this.held++
  }

  get allPaid(): number {
    return this.paid.reduce((sum, count) => sum + count, 0)
  }
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
