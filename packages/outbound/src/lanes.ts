/** A call that waits in this process, linked to its neighbours of the same priority. */
export interface Waiter<W> {
  readonly priority: number
  before: W | undefined
  after: W | undefined
  /** Whether it stands in a lane. */
  isLinked: boolean
}

/**
 * Calls that wait, the highest priority first, and in each the oldest first. The lists are linked: a set is slow to look
 * through from its front once many have left there.
 */
export class Lanes<W extends Waiter<W>> {
  readonly #lanes: Lane<W>[] = []

  add(waiter: W): void {
    const lane = this.#laneOf(waiter.priority)
    waiter.before = lane.last
    if (lane.last) lane.last.after = waiter
    else lane.first = waiter
    lane.last = waiter
    waiter.isLinked = true
  }

  delete(waiter: W): void {
    if (!waiter.isLinked) return
    const lane = this.#laneOf(waiter.priority)
    const { before, after } = waiter
    if (before) before.after = after
    else lane.first = after
    if (after) after.before = before
    else lane.last = before
    waiter.before = waiter.after = undefined
    waiter.isLinked = false
    if (!lane.first) this.#lanes.splice(this.#lanes.indexOf(lane), 1)
  }

  /** The next one of those that are suitable. */
  first(isSuitable: (waiter: W) => boolean): W | undefined {
    for (const lane of this.#lanes) {
      for (let waiter = lane.first; waiter; waiter = waiter.after) if (isSuitable(waiter)) return waiter
    }
    return undefined
  }

  #laneOf(priority: number): Lane<W> {
    let i = 0
    while (i < this.#lanes.length && this.#lanes[i]!.priority > priority) i++
    const found = this.#lanes[i]
    if (found?.priority === priority) return found
    const lane = { priority, first: undefined, last: undefined }
    this.#lanes.splice(i, 0, lane)
    return lane
  }
}

interface Lane<W> {
  readonly priority: number
  first: W | undefined
  last: W | undefined
}
