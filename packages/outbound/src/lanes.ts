/** An entry of a queue, linked to its neighbours of the same priority. */
export interface LaneEntry<E> {
  readonly priority: number
  before: E | undefined
  after: E | undefined
  /** Whether it is in a lane. */
  isLinked: boolean
}

/**
 * A queue with priorities: the highest priority first, and in each the oldest first. The lists are linked, because looking
 * through a `Set` from its front is slow once many entries have left there.
 */
export class Lanes<E extends LaneEntry<E>> {
  readonly #lanes: Lane<E>[] = []

  add(entry: E): void {
    const lane = this.#laneOf(entry.priority)
    entry.before = lane.last
    if (lane.last) lane.last.after = entry
    else lane.first = entry
    lane.last = entry
    entry.isLinked = true
  }

  delete(entry: E): void {
    if (!entry.isLinked) return
    const lane = this.#laneOf(entry.priority)
    const { before, after } = entry
    if (before) before.after = after
    else lane.first = after
    if (after) after.before = before
    else lane.last = before
    entry.before = entry.after = undefined
    entry.isLinked = false
    if (!lane.first) this.#lanes.splice(this.#lanes.indexOf(lane), 1)
  }

  /** The first entry that is suitable. */
  first(isSuitable: (entry: E) => boolean): E | undefined {
    for (const lane of this.#lanes) {
      for (let entry = lane.first; entry; entry = entry.after) if (isSuitable(entry)) return entry
    }
    return undefined
  }

  #laneOf(priority: number): Lane<E> {
    let i = 0
    while (i < this.#lanes.length && this.#lanes[i]!.priority > priority) i++
    const found = this.#lanes[i]
    if (found?.priority === priority) return found
    const lane = { priority, first: undefined, last: undefined }
    this.#lanes.splice(i, 0, lane)
    return lane
  }
}

interface Lane<E> {
  readonly priority: number
  first: E | undefined
  last: E | undefined
}
