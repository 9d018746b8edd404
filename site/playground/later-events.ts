interface Entry<Event> {
  readonly event: Event
  readonly order: number
}

/** Events by time, in a binary heap; of those at one instant the one that was added first comes first. */
export class LaterEvents<Event extends { readonly at: number }> {
  readonly #heap: Entry<Event>[] = []
  #added = 0

  get nextAt(): number {
    return this.#heap[0]?.event.at ?? Infinity
  }

  add(event: Event): void {
    const entry = { event, order: this.#added++ }
    let place = this.#heap.length
    for (let parent; place > 0 && isBefore(entry, this.#heap[(parent = (place - 1) >> 1)]!); place = parent)
      this.#heap[place] = this.#heap[parent]!
    this.#heap[place] = entry
  }

  /** Removes the next event. */
  take(): Event | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (heap.length === 0) return first?.event
    let place = 0
    for (let child = 1; child < heap.length; child = 2 * place + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last!)) break
      heap[place] = heap[child]!
      place = child
    }
    heap[place] = last!
    return first!.event
  }
}

function isBefore<Event extends { readonly at: number }>(one: Entry<Event>, other: Entry<Event>): boolean {
  return one.event.at < other.event.at || (one.event.at === other.event.at && one.order < other.order)
}
