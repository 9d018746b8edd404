import { storedKey } from '@sluice/core/internal'
import type { InstrumentId } from '../instruments.js'
import type { Observe, Source } from '../sinks/sink.js'
import { BoundedLabels } from './bounded-labels.js'

/** How many calls wait, how many permits are held, and the limits that were found: of all semaphores, or of all queues, of one name. */
export class WaitingCounts implements Source {
  readonly isOver = false
  readonly #followed = new Set<Waitable>()
  readonly #keys = new BoundedLabels(MOST_KEYS)
  /** By the number of the key. */
  readonly #limits: number[] = []

  /** Counts the waiting calls of the semaphores, or queues, of one name. */
  constructor(
    private readonly kind: 'semaphore' | 'queue',
    private readonly name: string,
  ) {}

  /**
   * Adds a semaphore or queue to the sums of its name. It is left out once it is over, or when the function that this
   * returns is called.
   */
  follow(waitable: Waitable): () => void {
    this.#followed.add(waitable)
    return () => void this.#followed.delete(waitable)
  }

  /**
   * Notes the adaptive limit, one that is found by trial, that a semaphore or queue has just found for a key. The latest limit of
   * each key is reported; a long key is shown by its digest, as stores keep it.
   */
  adapted({ key, limit }: { readonly key: string; readonly limit: number }): void {
    this.#limits[this.#keys.numberFor(storedKey(key))] = limit
  }

  /**
   * Reports the values of one instrument, over all semaphores or queues of this name: the adaptive limits by key, how many calls
   * wait, or how many permits of semaphores are in use. It has no values of other instruments. Semaphores and queues that are over
   * (closed, with nothing held) are dropped.
   */
  read(instrument: InstrumentId, observe: Observe): void {
    const [kind, name] = [this.kind, this.name]
    if (instrument === 'adaptiveLimit') {
      this.#limits.forEach((limit, i) => observe(limit, { kind, name, key: this.#keys.labels[i]! }))
    }
    let [waiting, inUse] = [0, 0]
    for (const waitable of this.#followed) {
      waiting += waitable.waiting()
      inUse += waitable.inUse()
      if (waitable.isOver()) this.#followed.delete(waitable)
    }
    if (instrument === 'waiting') observe(waiting, { kind, name })
    if (instrument === 'inUse' && kind === 'semaphore') observe(inUse, { semaphore: name })
  }
}

const MOST_KEYS = 100

export interface Waitable {
  waiting(): number
  inUse(): number
  /** Closed, and nothing is held any more. */
  isOver(): boolean
}
