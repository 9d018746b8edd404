/**
 * The batches that were sent and have not come back. One that has no outcome for a minute counts as lost: some clients never
 * settle a call after its connection broke, and calls would wait for such a batch forever.
 */
export class BatchesInFlight {
  /** Calls in them. */
  calls = 0
  readonly #now: () => number
  /** The oldest first. */
  readonly #sent = new Set<SentBatch>()
  #bounded = 0

  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  /** How many more may be sent. */
  get room(): number {
    return MOST_BATCHES - this.#bounded
  }

  get isFull(): boolean {
    if (this.room <= 0) this.dropLost()
    return this.room <= 0
  }

  /** Counts a batch that is sent now. One that is not bounded takes no room. Pass the result to `end` once it has come back. */
  begin(callers: number, isBounded: boolean): SentBatch {
    const batch = { callers, isBounded, since: this.#now() }
    this.#sent.add(batch)
    this.calls += callers
    if (isBounded) this.#bounded++
    return batch
  }

  /** Returns false if the batch had counted as lost. */
  end(batch: SentBatch): boolean {
    if (!this.#sent.delete(batch)) return false
    this.calls -= batch.callers
    if (batch.isBounded) this.#bounded--
    return true
  }

  dropLost(): void {
    const lost = this.#now() - LOST_MS
    for (const batch of this.#sent) {
      if (batch.since > lost) return
      this.end(batch)
    }
  }
}

export interface SentBatch {
  readonly callers: number
  readonly isBounded: boolean
  readonly since: number
}

/** Enough to keep Redis and this process busy; calls that arrive beyond that fill later batches better. */
const MOST_BATCHES = 16

const LOST_MS = 60_000
