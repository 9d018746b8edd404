/*
 * The calls of a log by caller. They arrive in order of time and are asked for caller by caller, several times. So they are
 * put into parts by caller, 16 bytes a call, and each full block of a part is laid on a shelf: in memory, or in a file, which
 * keeps memory constant however long the log is. A part is sorted by caller when it is read.
 */

/** Where blocks are kept. */
export interface Shelf {
  /** Keeps a copy of the bytes. All blocks have one size. */
  write(block: Uint8Array): void
  /** The block that was written as the `index`-th, in a buffer of its own. */
  read(index: number): Uint8Array
}

/** The calls of one caller: entries `from` to `to`, `to` left out, in order of time. The arrays are used again. */
export interface CallerCalls {
  caller: number
  readonly times: Float64Array
  readonly costs: Uint32Array
  from: number
  to: number
}

export class Trace {
  readonly #parts = Array.from({ length: PARTS }, () => new TracePart())
  #blocks = 0

  constructor(readonly shelf: Shelf = memoryShelf()) {}

  /** Keeps a call in the block of its caller's part; a full block goes to the shelf. */
  add(caller: number, at: number, cost: number): void {
    const part = this.#parts[caller % PARTS]!
    const { counts, block, places } = part
    const place = Math.floor(caller / PARTS)
    counts[place] = (counts[place] ?? 0) + 1
    block.times[2 * part.filled] = at
    block.numbers[4 * part.filled + 2] = caller
    block.numbers[4 * part.filled + 3] = cost
    if (++part.filled < BLOCK_CALLS) return
    this.shelf.write(block.bytes)
    places.push(this.#blocks++)
    part.filled = 0
  }

  /**
   * Calls each of `visits` with the calls of each caller, caller by caller. It pauses now and then, so that other work
   * of the process gets its turn, and ends at a pause if `signal` asks for that. Returns whether all were visited.
   */
  async forEach(visits: readonly ((calls: CallerCalls) => void)[], signal?: AbortSignal): Promise<boolean> {
    let visited = 0
    for (let index = 0; index < PARTS; index++) {
      for (const calls of this.#callersOf(index)) {
        for (const visit of visits) {
          visit(calls)
          visited += calls.to - calls.from
          if (visited < CALLS_BETWEEN_PAUSES) continue
          visited = 0
          await new Promise((resolve) => setTimeout(resolve, 0))
          if (signal?.aborted) return false
        }
      }
    }
    return true
  }

  /** Sorts the calls of a part by caller, by counting as there are few callers a part. Yields those of each caller. */
  *#callersOf(index: number): Generator<CallerCalls> {
    const part = this.#parts[index]!
    const ends: number[] = [] // by caller of this part: where his calls begin, and after they were sorted in where they end
    let sum = 0
    for (const count of part.counts) sum = (ends.push(sum), sum + count)
    const calls = { caller: 0, times: new Float64Array(sum), costs: new Uint32Array(sum), from: 0, to: 0 }
    const sortIn = ({ times, numbers }: TraceBlock, length: number): void => {
      for (let i = 0; i < length; i++) {
        const to = ends[Math.floor(numbers[4 * i + 2]! / PARTS)]!++
        calls.times[to] = times[2 * i]!
        calls.costs[to] = numbers[4 * i + 3]!
      }
    }
    for (const place of part.places) sortIn(new TraceBlock(this.shelf.read(place)), BLOCK_CALLS)
    sortIn(part.block, part.filled)
    for (const [caller, end] of ends.entries()) {
      calls.caller = caller * PARTS + index
      calls.from = calls.to
      calls.to = end
      yield calls
    }
  }
}

const PARTS = 64
const BLOCK_CALLS = 4096
/** Each costs a visit up to a microsecond. */
const CALLS_BETWEEN_PAUSES = 2 ** 17

/** Calls, of each its instant and, in the other half of 16 bytes, caller and cost. */
class TraceBlock {
  readonly times: Float64Array
  readonly numbers: Uint32Array

  /** Two views on the same bytes: 16 a call, of which the first 8 are its time and the rest two numbers. */
  constructor(readonly bytes: Uint8Array) {
    this.times = new Float64Array(bytes.buffer)
    this.numbers = new Uint32Array(bytes.buffer)
  }
}

/** Every 64th caller: how often each called, the block that is being filled, and the places of full ones. */
class TracePart {
  readonly counts: number[] = []
  readonly block = new TraceBlock(new Uint8Array(16 * BLOCK_CALLS))
  readonly places: number[] = []
  filled = 0
}

/** A shelf that keeps its blocks in memory. */
export function memoryShelf(): Shelf {
  const blocks: Uint8Array[] = []
  return { write: (block) => void blocks.push(block.slice()), read: (index) => blocks[index]! }
}
