import type { LoggedCall } from './calls.js'

/*
 * Puts calls in order of time. Logs are nearly in order: lines of several workers overlap, and a line is written when its
 * call ends.
 */

/** Sorts what comes at most `hold` microseconds late. */
export class Sorter {
  #pending: LoggedCall[] = []
  #kept = 0
  #latest = -Infinity

  constructor(readonly hold: number) {}

  /**
   * Takes a call to be sorted by its time. Returns false, and does not take it, if it is older than the newest by more than
   * `hold` microseconds: calls after it may have been passed on already.
   */
  add(item: LoggedCall): boolean {
    if (item.at < this.#latest - this.hold) return false
    if (item.at > this.#latest) this.#latest = item.at
    this.#pending.push(item)
    return true
  }

  /**
   * Takes out the calls that no later call can come before, in order of time. Returns [] until twice as many calls are
   * pending as the last sorting kept, and 1,000 more, so that few calls are sorted again.
   */
  due(): LoggedCall[] {
    return this.#pending.length < 2 * this.#kept + 1000 ? [] : this.end(this.#latest - this.hold)
  }

  /**
   * Takes out the calls up to the instant `until`, in microseconds, and returns them in order of time. Without `until` it
   * takes all, as at the end of a log.
   */
  end(until = Infinity): LoggedCall[] {
    const sorted = this.#pending.sort((one, other) => one.at - other.at)
    let count = sorted.length
    while (count > 0 && sorted[count - 1]!.at > until) count--
    this.#pending = sorted.splice(count)
    this.#kept = this.#pending.length
    return sorted
  }
}

/** One of the sequences that are merged: the batch at hand, and the first item of it that was not taken. */
interface Head {
  readonly source: AsyncIterator<LoggedCall[]>
  batch: LoggedCall[]
  next: number
}

/**
 * Merges logs into one sequence of batches in order of time. A heap has the log with the earliest next call first, of which
 * calls are taken up to the next one (`bound`) of the two logs below it.
 */
export async function* merge(sources: readonly AsyncIterator<LoggedCall[]>[]): AsyncGenerator<LoggedCall[]> {
  const heads = sources.map((source): Head => ({ source, batch: [], next: 0 }))
  const heap: Head[] = []
  for (const head of heads) if (await hasNext(head)) heap.push(head)
  heap.sort((one, other) => atOf(one) - atOf(other)) // a sorted list is a heap
  let merged: LoggedCall[] = []
  for (let head = heap[0]; head; head = heap[0]) {
    const bound = Math.min(...heap.slice(1, 3).map(atOf))
    while (head.next < head.batch.length && atOf(head) <= bound) merged.push(head.batch[head.next++]!)
    const first = (await hasNext(head)) ? head : heap.pop()!
    if (heap.length > 0) sink(heap, first)
    if (merged.length < 1000) continue
    yield merged
    merged = []
  }
  yield merged
}

/** Whether a log has a call left, which `atOf` can then read: the next batch is fetched where one is used up. */
async function hasNext(head: Head): Promise<boolean> {
  while (head.next === head.batch.length) {
    const { done, value } = await head.source.next()
    if (done) return false
    head.batch = value
    head.next = 0
  }
  return true
}

/** Puts `head` first in a binary heap, and moves it down below all entries whose next call is earlier. */
function sink(heap: Head[], head: Head): void {
  let i = 0
  for (let child = 1; child < heap.length; child = 2 * i + 1) {
    if (child + 1 < heap.length && atOf(heap[child + 1]!) < atOf(heap[child]!)) child++
    if (atOf(heap[child]!) >= atOf(head)) break
    heap[i] = heap[child]!
    i = child
  }
  heap[i] = head
}

/** The instant of the next call that a sequence has, in microseconds. */
const atOf = ({ batch, next }: Head): number => batch[next]!.at
