import type { QueuedCall } from './call.js'

/**
 * Waiting calls: the highest priority first, and of equal ones the oldest. A binary heap, so that the cost of a call grows with
 * the logarithm of their number, be their priorities one or many.
 */
export class PriorityQueue {
  readonly #heap: QueuedCall[] = []
  #added = 0

  /** Adds a call behind those of its priority. */
  add(call: QueuedCall): void {
    call.order = this.#added++
    this.#rise(call, this.#heap.length)
  }

  /** Removes a call; does nothing if it is not in the queue. The last call of the heap takes its place. */
  delete(call: QueuedCall): void {
    const { place } = call
    if (place < 0) return
    call.place = -1
    const last = this.#heap.pop()!
    if (last === call) return
    this.#rise(last, place)
    this.#sink(last)
  }

  /**
   * Returns the first call in the order of the queue that is suitable; undefined if none is. Callers give no `place` and no
   * `best`: the search calls itself with both, for the part of the heap from `place` down, where `best` is the first suitable
   * call found elsewhere. The two calls below a place never come before the one there, so the search ends at a suitable call, and
   * at one behind `best`.
   */
  first(isSuitable: (call: QueuedCall) => boolean, place = 0, best?: QueuedCall): QueuedCall | undefined {
    const call = this.#heap[place]
    if (!call || (best && isBefore(best, call))) return best
    if (isSuitable(call)) return call
    const left = this.first(isSuitable, 2 * place + 1, best)
    return this.first(isSuitable, 2 * place + 2, left)
  }

  /**
   * Puts a call into the heap, from the free place `place` on upwards: each call above that comes after it moves one
   * level down.
   */
  #rise(call: QueuedCall, place: number): void {
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!isBefore(call, this.#heap[above]!)) break
      this.#put(this.#heap[above]!, place)
      place = above
    }
    this.#put(call, place)
  }

  /** Moves a call down the heap as long as one of the two calls below comes before it, the first of which takes its place. */
  #sink(call: QueuedCall): void {
    let { place } = call
    for (;;) {
      const left = 2 * place + 1
      const [first, second] = [this.#heap[left], this.#heap[left + 1]]
      const next = first && second && isBefore(second, first) ? second : first
      if (!next || !isBefore(next, call)) break
      const free = next.place
      this.#put(next, place)
      place = free
    }
    this.#put(call, place)
  }

  /** Sets the call at a place of the heap. */
  #put(call: QueuedCall, place: number): void {
    this.#heap[place] = call
    call.place = place
  }
}

/** Whether a call goes out before another one: by higher priority, then by age. */
function isBefore(one: QueuedCall, other: QueuedCall): boolean {
  return (other.terms.priority - one.terms.priority || one.order - other.order) < 0
}
