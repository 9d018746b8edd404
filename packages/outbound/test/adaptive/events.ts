import { randomFrom } from '@sluice/harness/figures'

/** Simulated time: events in the order of their instants, in milliseconds from 0, and the random numbers of one seed. */
export class Events {
  now = 0
  readonly #heap: Event[] = []
  readonly #random: () => number
  #added = 0

  constructor(seed: number) {
    this.#random = randomFrom(seed)
  }

  after(ms: number, run: () => void): void {
    const event = { at: this.now + ms, order: this.#added++, run }
    let place = this.#heap.length
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!isBefore(event, this.#heap[above]!)) break
      this.#heap[place] = this.#heap[above]!
      place = above
    }
    this.#heap[place] = event
  }

  runUntil(end: number): void {
    for (let first = this.#heap[0]; first && first.at <= end; first = this.#heap[0]) {
      this.#takeFirst()
      this.now = first.at
      first.run()
    }
  }

  between(least: number, most: number): number {
    return least + this.#random() * (most - least)
  }

  /** A time of the given mean whose logarithm is normal: with a spread of 0.6 one of 40 is above 2.7 times the mean. */
  around(mean: number, spread: number): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.#random())) * Math.cos(2 * Math.PI * this.#random())
    return mean * Math.exp(spread * normal - (spread * spread) / 2)
  }

  #takeFirst(): void {
    const last = this.#heap.pop()!
    if (this.#heap.length === 0) return
    let place = 0
    for (;;) {
      const [left, right] = [this.#heap[2 * place + 1], this.#heap[2 * place + 2]]
      const next = left && right && isBefore(right, left) ? right : left
      if (!next || !isBefore(next, last)) break
      this.#heap[place] = next
      place = 2 * place + (next === left ? 1 : 2)
    }
    this.#heap[place] = last
  }
}

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

function isBefore(one: Event, other: Event): boolean {
  return (one.at - other.at || one.order - other.order) < 0
}
