/** Events by time; of those at one instant the first that was added comes first. A binary heap. */
export class LaterEvents<T> {
  readonly #heap: { readonly at: number; readonly order: number; readonly event: T }[] = []
  #order = 0

  add(at: number, event: T): void {
    const heap = this.#heap
    const added = { at, order: this.#order++, event }
    let place = heap.push(added) - 1
    for (; place > 0; ) {
      const parent = (place - 1) >> 1
      if (!isBefore(added, heap[parent]!)) break
      heap[place] = heap[parent]!
      place = parent
    }
    heap[place] = added
  }

  /** Removes and returns the first event, if it is not after `at`. */
  takeUntil(at: number): { readonly at: number; readonly event: T } | undefined {
    const heap = this.#heap
    const first = heap[0]
    if (!first || first.at > at) return undefined
    const last = heap.pop()!
    if (heap.length > 0) this.#sink(last)
    return first
  }

  #sink(moved: { readonly at: number; readonly order: number; readonly event: T }): void {
    const heap = this.#heap
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, moved)) break
      heap[place] = heap[child]!
      place = child
    }
    heap[place] = moved
  }
}

function isBefore(one: { at: number; order: number }, other: { at: number; order: number }): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}
