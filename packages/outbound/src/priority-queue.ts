import type { Turn } from './turn.js'

/**
 * Waiting turns: the highest priority first, and of equal ones the oldest. A binary heap, so that the cost of a call grows with
 * the logarithm of their number, be their priorities one or many.
 */
export class PriorityQueue {
  readonly #heap: Turn[] = []
  /** All turns: first the first one, and then the others in no order. */
  readonly turns: readonly Turn[] = this.#heap
  #added = 0

  /** Adds a turn behind those of its priority. */
  add(turn: Turn): void {
    turn.standAt(this.#heap.length, this.#added++)
    this.#heap.push(turn)
    this.#rise(turn)
  }

  /** Removes a turn; does nothing if it is not in the queue. The last one of the heap takes its place. */
  delete(turn: Turn): void {
    const { place } = turn
    if (place < 0) return
    turn.standAt(-1)
    const last = this.#heap.pop()!
    if (last === turn) return
    this.#put(last, place)
    this.#rise(last)
    this.#sink(last)
  }

  /**
   * Returns the first turn in the order of the queue that is suitable; undefined if none is. Callers give no `place` and no
   * `best`: the search calls itself with both, for the part of the heap from `place` down, where `best` is the first suitable
   * one found elsewhere. The two turns below a place never come before the one there, so the search ends at a suitable one, and
   * at one behind `best`.
   */
  first(isSuitable: (turn: Turn) => boolean, place = 0, best?: Turn): Turn | undefined {
    const turn = this.#heap[place]
    if (!turn || (best && isBefore(best, turn))) return best
    if (isSuitable(turn)) return turn
    const left = this.first(isSuitable, 2 * place + 1, best)
    return this.first(isSuitable, 2 * place + 2, left)
  }

  /** Moves a turn up the heap: each one above that comes after it moves one level down. */
  #rise(turn: Turn): void {
    while (turn.place > 0) {
      const above = this.#heap[(turn.place - 1) >> 1]!
      if (!isBefore(turn, above)) return
      this.#swap(turn, above)
    }
  }

  /** Moves a turn down the heap as long as one of the two below comes before it, the first of which takes its place. */
  #sink(turn: Turn): void {
    for (;;) {
      const left = 2 * turn.place + 1
      const [first, second] = [this.#heap[left], this.#heap[left + 1]]
      const next = first && second && isBefore(second, first) ? second : first
      if (!next || !isBefore(next, turn)) return
      this.#swap(next, turn)
    }
  }

  #swap(one: Turn, other: Turn): void {
    const { place } = one
    this.#put(one, other.place)
    this.#put(other, place)
  }

  #put(turn: Turn, place: number): void {
    this.#heap[place] = turn
    turn.standAt(place)
  }
}

/** Whether a turn comes before another one: by higher priority, then by age. */
function isBefore(one: Turn, other: Turn): boolean {
  return (other.terms.priority - one.terms.priority || one.order - other.order) < 0
}
