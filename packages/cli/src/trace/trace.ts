/*
 * The calls of a log by caller. They arrive in order of time and are asked for caller by caller, several times. So they are
 * put into parts by caller, 16 bytes a call, and each full block of a part is laid on a shelf: in memory, or in a file, which
 * keeps memory constant however long the log is. A part is sorted by caller when it is read, as much of it at a time as a fixed
 * room holds.
 */

/** Where blocks are kept. */
export interface Shelf {
  /** Keeps a copy of the bytes. All blocks have one size. */
  write(block: Uint8Array): void
  /** Puts the block that was written as the `index`-th in `into`. */
  read(index: number, into: Uint8Array): void
  /** Called with how often all calls have been read: 1.5 is once, and half of them again. */
  progress?(times: number): void
  /** Called with the bytes that each new caller takes beside the blocks: his name, and what finds it. */
  hold?(bytes: number): void
}

/** The calls of one caller: entries `from` to `to`, `to` left out, in order of time. The arrays are used again. */
export interface CallerCalls {
  caller: number
  times: Float64Array
  costs: Uint32Array
  from: number
  to: number
  /** How often an entry was looked at since the last pause: the measure of work. */
  looks: number
}

type Visit<T> = (item: T, calls: CallerCalls) => void

export class Trace {
  readonly #parts = Array.from({ length: PARTS }, () => new TracePart())
  readonly #read = new TraceBlock()
  #blocks = 0
  #partsRead = 0

  constructor(readonly shelf: Shelf = memoryShelf()) {}

  /**
   * Keeps a call: its instant in microseconds, its caller's number and its cost, in 16 bytes. Callers are dealt over 64 parts, so
   * that the calls of one caller are later found by reading one part, and not the whole log. A part collects calls in a block; a
   * full block is written to the shelf (memory or a file), and its index there is noted.
   */
  add(caller: number, at: number, cost: number): void {
    const part = this.#parts[caller % PARTS]!
    const { counts, block, written } = part
    const place = Math.floor(caller / PARTS)
    counts[place] = (counts[place] ?? 0) + 1
    block.set(part.filled, at, caller, cost)
    if (++part.filled < BLOCK_CALLS) return
    this.shelf.write(block.bytes)
    written.push(this.#blocks++)
    part.filled = 0
  }

  /**
   * Calls `visit` for each caller, with each of `items` and the caller's calls. Visits raise `looks`, the measure of their work:
   * after enough of it there is a pause for other work of the process, at which `signal` may end the visits. Returns whether all
   * visits were made.
   */
  async forEach<T>(items: readonly T[], visit: Visit<T>, signal?: AbortSignal): Promise<boolean> {
    const calls: CallerCalls = { caller: 0, ...roomFor(CALLS_AT_ONCE), from: 0, to: 0, looks: 0 }
    for (const index of this.#parts.keys()) {
      this.shelf.progress?.(this.#partsRead++ / PARTS)
      for (calls.caller of this.#callersOf(index, calls)) {
        for (const item of items) {
          visit(item, calls)
          if (calls.looks < LOOKS_BETWEEN_PAUSES) continue
          calls.looks = 0
          await new Promise((resolve) => setTimeout(resolve, 0))
          if (signal?.aborted) return false
        }
      }
    }
    return true
  }

  /**
   * Yields the number of each caller in part `index`, whose calls are then in `calls`, from `from` up to `to`. The blocks of the
   * part have the calls of all its callers mixed, in order of time. They are read in rounds of some callers. It is known how often
   * each caller called (`counts`), so in each round the callers first get their stretches of `calls`, and then the calls are sorted
   * in. Caller n has the place floor(n / 64) in his part.
   */
  *#callersOf(index: number, calls: CallerCalls): Generator<number> {
    const { counts, written, block, filled } = this.#parts[index]!
    for (let first = 0, next = 0; first < counts.length; first = next) {
      next = endOfRound(counts, first)
      // Where the stretch of each caller ends: at its beginning, until his calls are sorted in.
      const ends: number[] = []
      let length = 0
      for (const count of counts.slice(first, next)) {
        ends.push(length)
        length += count
      }
      if (length > calls.times.length) Object.assign(calls, roomFor(length))
      /** Puts those calls of a block that are of this round's callers into their callers' stretches, in order of time. */
      const sortIn = (from: TraceBlock, filledCalls: number): void => {
        for (let i = 0; i < filledCalls; i++) {
          const place = Math.floor(from.callerAt(i) / PARTS)
          if (place < first || place >= next) continue
          const to = ends[place - first]!++
          calls.times[to] = from.timeAt(i)
          calls.costs[to] = from.costAt(i)
        }
      }
      for (const blockIndex of written) {
        this.shelf.read(blockIndex, this.#read.bytes)
        sortIn(this.#read, BLOCK_CALLS)
      }
      sortIn(block, filled)
      for (const [place, end] of ends.entries()) {
        calls.from = place === 0 ? 0 : ends[place - 1]!
        calls.to = end
        yield (first + place) * PARTS + index
      }
    }
  }
}

/** The place behind the last caller of a round: from `first` on as many as there is room for their calls, and at least one. */
function endOfRound(counts: readonly number[], first: number): number {
  let [next, calls] = [first + 1, counts[first]!]
  while (next < counts.length && calls + counts[next]! <= CALLS_AT_ONCE) calls += counts[next++]!
  return next
}

/** Arrays for the instants and costs of this many calls. */
function roomFor(calls: number): Pick<CallerCalls, 'times' | 'costs'> {
  return { times: new Float64Array(calls), costs: new Uint32Array(calls) }
}

const PARTS = 64
const BLOCK_CALLS = 4096
/** 3 MB. Only a caller who has more takes more. */
const CALLS_AT_ONCE = 2 ** 18
/** Each takes up to a tenth of a microsecond. */
const LOOKS_BETWEEN_PAUSES = 2 ** 18

/** Calls, in bytes that are also seen as an array of instants and as one of numbers. */
class TraceBlock {
  readonly bytes = new Uint8Array(16 * BLOCK_CALLS)
  readonly #times = new Float64Array(this.bytes.buffer)
  readonly #numbers = new Uint32Array(this.bytes.buffer)

  /** Puts a call at place `i`, in 16 bytes: in the first 8 the instant, in the next 4 the caller, in the last 4 the cost. */
  set(i: number, at: number, caller: number, cost: number): void {
    this.#times[2 * i] = at
    this.#numbers[4 * i + 2] = caller
    this.#numbers[4 * i + 3] = cost
  }

  timeAt(i: number): number {
    return this.#times[2 * i]!
  }

  callerAt(i: number): number {
    return this.#numbers[4 * i + 2]!
  }

  costAt(i: number): number {
    return this.#numbers[4 * i + 3]!
  }
}

/** Every 64th caller: how often each called, the block that is being filled, and the indexes of those that are written. */
class TracePart {
  readonly counts: number[] = []
  readonly block = new TraceBlock()
  readonly written: number[] = []
  filled = 0
}

/**
 * Makes a shelf in memory, which a trace uses if it is given no other. A trace writes its blocks, arrays of bytes with calls, to a
 * shelf, and reads a block by its index in the order of writing. This shelf keeps copies, as the trace fills the same block again.
 */
export function memoryShelf(): Shelf {
  const blocks: Uint8Array[] = []
  return {
    write: (block) => void blocks.push(block.slice()),
    read: (index, into) => into.set(blocks[index]!),
  }
}
