/** A call that waits in this process. */
export interface Waiter {
  readonly priority: number
}

/** Calls that wait, the highest priority first, and in each the oldest first. Every operation is quick however many wait. */
export class Lanes<W extends Waiter> {
  readonly #lanes: { readonly priority: number; readonly waiters: Set<W> }[] = []

  add(waiter: W): void {
    let i = 0
    while (i < this.#lanes.length && this.#lanes[i]!.priority > waiter.priority) i++
    if (this.#lanes[i]?.priority !== waiter.priority) {
      this.#lanes.splice(i, 0, { priority: waiter.priority, waiters: new Set() })
    }
    this.#lanes[i]!.waiters.add(waiter)
  }

  delete(waiter: W): void {
    const i = this.#lanes.findIndex(({ priority }) => priority === waiter.priority)
    const waiters = this.#lanes[i]?.waiters
    if (waiters?.delete(waiter) && waiters.size === 0) this.#lanes.splice(i, 1)
  }

  /** The next one of those that are suitable. */
  first(isSuitable: (waiter: W) => boolean): W | undefined {
    for (const { waiters } of this.#lanes) {
      for (const waiter of waiters) if (isSuitable(waiter)) return waiter
    }
    return undefined
  }
}
