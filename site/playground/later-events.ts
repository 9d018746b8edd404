interface Later<T> {
  readonly at: number
  readonly event: T
}

/** Events by time; of those at one instant the one that was added first comes first. */
export class LaterEvents<T> {
  /** The next one last. */
  readonly #list: Later<T>[] = []

  add(at: number, event: T): void {
    const list = this.#list
    let [low, high] = [0, list.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (list[middle]!.at > at) low = middle + 1
      else high = middle
    }
    list.splice(low, 0, { at, event })
  }

  /** Removes and returns the next event, if it is not after `at`. */
  takeUntil(at: number): Later<T> | undefined {
    return (this.#list.at(-1)?.at ?? Infinity) <= at ? this.#list.pop() : undefined
  }
}
