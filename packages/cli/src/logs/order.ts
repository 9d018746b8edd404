import type { LoggedCall } from './calls.js'

/*
 * Puts calls in order of time. Logs are nearly in order: lines of several workers overlap, and a line is written when its
 * call ends.
 */

/** Sorts calls that come at most `hold` microseconds late. */
export class Sorter {
  #pending: LoggedCall[] = []
  #kept = 0
  #latest = -Infinity

  constructor(readonly hold: number) {}

  /**
   * Takes a call to be sorted by its time. Returns false, and does not take it, if it is older than the newest by more than
   * `hold` microseconds: calls after it may have been passed on already.
   */
  add(call: LoggedCall): boolean {
    if (call.at < this.#latest - this.hold) return false
    if (call.at > this.#latest) this.#latest = call.at
    this.#pending.push(call)
    return true
  }

  /**
   * Takes out the calls that are due, and returns them in order of time: those that no later call can come before. Sorting waits,
   * and this returns [], until twice as many calls are pending as the last sorting kept, and 1,000 more: so few calls are sorted
   * again.
   */
  takeDue(): LoggedCall[] {
    return this.#pending.length < 2 * this.#kept + 1000 ? [] : this.take(this.#latest - this.hold)
  }

  /** Takes out the calls up to the instant `until` (microseconds), or all without it, and returns them in order of time. */
  take(until = Infinity): LoggedCall[] {
    const sorted = this.#pending.sort((one, other) => one.at - other.at)
    let count = sorted.length
    while (count > 0 && sorted[count - 1]!.at > until) count--
    this.#pending = sorted.splice(count)
    this.#kept = this.#pending.length
    return sorted
  }
}

/** One of the logs that are merged: its present batch of calls, and the index of the next call in it. */
interface MergedLog {
  readonly source: AsyncIterator<LoggedCall[]>
  batch: LoggedCall[]
  next: number
}

/**
 * Merges logs into one sequence of batches in order of time. A heap has the log with the earliest next call first. Calls are taken
 * from that log up to the next call (`bound`) of the two logs below it. Then the log sinks in the heap, or leaves it at its end.
 */
export async function* mergeLogs(
  sources: readonly AsyncIterator<LoggedCall[]>[],
): AsyncGenerator<LoggedCall[]> {
  const logs = sources.map((source): MergedLog => ({ source, batch: [], next: 0 }))
  const heap: MergedLog[] = []
  for (const log of logs) if (await fetchNext(log)) heap.push(log)
  heap.sort((one, other) => nextTimeOf(one) - nextTimeOf(other)) // a sorted list is a heap
  let merged: LoggedCall[] = []
  for (let log = heap[0]; log; log = heap[0]) {
    const bound = Math.min(...heap.slice(1, 3).map(nextTimeOf))
    while (log.next < log.batch.length && nextTimeOf(log) <= bound) merged.push(log.batch[log.next++]!)
    const first = (await fetchNext(log)) ? log : heap.pop()!
    if (heap.length > 0) sinkInHeap(heap, first)
    if (merged.length < 1000) continue
    yield merged
    merged = []
  }
  yield merged
}

/** Fetches the next batch of a log if its batch is used up. Returns whether the log has a call left, which `nextTimeOf` can then read. */
async function fetchNext(log: MergedLog): Promise<boolean> {
  while (log.next === log.batch.length) {
    const { done, value } = await log.source.next()
    if (done) return false
    log.batch = value
    log.next = 0
  }
  return true
}

/** Puts a log in first place of a binary heap, and moves it down below all logs whose next call is earlier. */
function sinkInHeap(heap: MergedLog[], log: MergedLog): void {
  let i = 0
  for (let child = 1; child < heap.length; child = 2 * i + 1) {
    if (child + 1 < heap.length && nextTimeOf(heap[child + 1]!) < nextTimeOf(heap[child]!)) child++
    if (nextTimeOf(heap[child]!) >= nextTimeOf(log)) break
    heap[i] = heap[child]!
    i = child
  }
  heap[i] = log
}

/** The instant of a log's next call, in microseconds. */
const nextTimeOf = ({ batch, next }: MergedLog): number => batch[next]!.at
