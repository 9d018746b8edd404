/** Events by time; of those at one instant the one that was added first comes first. */
export class LaterEvents<Event extends { readonly at: number }> {
  readonly #events: Event[] = []
  #taken = 0

  get nextAt(): number {
    return this.#events[this.#taken]?.at ?? Infinity
  }

  add(event: Event): void {
    let [low, high] = [this.#taken, this.#events.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#events[middle]!.at <= event.at) low = middle + 1
      else high = middle
    }
    this.#events.splice(low, 0, event)
  }

  /** The next event, of which there must be one. */
  take(): Event {
    return this.#events[this.#taken++]!
  }
}
