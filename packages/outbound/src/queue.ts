/** A call that waits in this process. */
export interface Waiter {
  readonly cost: number
  readonly priority: number
  /** Until when it waits, on the clock of `performance.now()`. */
  readonly until: number
}

/** Those who wait, the highest priority first, and in each the oldest first. Everything is quick however many wait. */
export class Queue<W extends Waiter> {
  readonly #lanes: { readonly priority: number; readonly waiters: Set<W> }[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add(waiter: W): void {
    let i = 0
    while (i < this.#lanes.length && this.#lanes[i]!.priority > waiter.priority) i++
    if (this.#lanes[i]?.priority !== waiter.priority) {
      this.#lanes.splice(i, 0, { priority: waiter.priority, waiters: new Set() })
    }
    this.#lanes[i]!.waiters.add(waiter)
    this.#size++
  }

  delete(waiter: W): void {
    const i = this.#lanes.findIndex(({ waiters }) => waiters.delete(waiter))
    if (i < 0) return
    this.#size--
    if (this.#lanes[i]!.waiters.size === 0) this.#lanes.splice(i, 1)
  }

  /** Who goes next of those that are suitable. */
  first(isSuitable: (waiter: W) => boolean): W | undefined {
    for (const { waiters } of this.#lanes) {
      for (const waiter of waiters) if (isSuitable(waiter)) return waiter
    }
    return undefined
  }
}
