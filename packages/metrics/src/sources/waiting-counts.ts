import type { InstrumentId } from '../instruments.js'
import type { Observe, Source } from '../sinks/sink.js'

/** How many calls wait, and how many permits are held: of all semaphores, or of all queues, of one name. */
export class WaitingCounts implements Source {
  readonly isOver = false
  readonly #kind: 'semaphore' | 'queue'
  readonly #name: string
  readonly #followed = new Set<Waitable>()

  /** `name` is that of the semaphores or queues. */
  constructor(kind: 'semaphore' | 'queue', name: string) {
    this.#kind = kind
    this.#name = name
  }

  /** Adds a semaphore or queue to the sums, until it is over or until the function that this returns is called. */
  follow(waitable: Waitable): () => void {
    this.#followed.add(waitable)
    return () => void this.#followed.delete(waitable)
  }

  /**
   * Reports how many calls wait and how many hold permits, in all that are followed; those that are over are dropped
   * after it.
   */
  read(instrument: InstrumentId, observe: Observe): void {
    let [waiting, inUse] = [0, 0]
    for (const waitable of this.#followed) {
      waiting += waitable.waiting()
      inUse += waitable.inUse()
      if (waitable.isOver()) this.#followed.delete(waitable)
    }
    if (instrument === 'waiting') observe(waiting, { kind: this.#kind, name: this.#name })
    if (instrument === 'inUse' && this.#kind === 'semaphore') observe(inUse, { semaphore: this.#name })
  }
}

export interface Waitable {
  waiting(): number
  inUse(): number
  /** Closed, and nothing is held any more. */
  isOver(): boolean
}
