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
  readonly #shelf: Shelf
  readonly #parts = Array.from({ length: PARTS }, () => new Part())
  #blocks = 0

  constructor(shelf: Shelf = memoryShelf()) {
    this.#shelf = shelf
  }

  add(caller: number, at: number, cost: number): void {
    const part = this.#parts[caller % PARTS]!
    const { times, numbers, filled } = part
    times[2 * filled] = at
    numbers[4 * filled + 2] = caller
    numbers[4 * filled + 3] = cost
    part.filled++
    if (part.filled < BLOCK_CALLS) return
    this.#shelf.write(part.bytes)
    part.blocks.push(this.#blocks++)
    part.filled = 0
  }

  /** Calls `visit` with the calls of each caller. Between parts other work of the process gets its turn. */
  async forEach(visit: (calls: CallerCalls) => void): Promise<void> {
    for (let index = 0; index < PARTS; index++) {
      this.#visitPart(index, visit)
      await new Promise((resolve) => setTimeout(resolve, 0))
    }
  }

  #visitPart(index: number, visit: (calls: CallerCalls) => void): void {
    const part = this.#parts[index]!
    const blocks = [...part.blocks.map((block) => wordsOf(this.#shelf.read(block))), wordsOf(part.bytes)]
    const lengths = blocks.map((_, b) => (b === part.blocks.length ? part.filled : BLOCK_CALLS))
    const ends: number[] = [] // by caller of this part: how many calls, then where the next one goes
    blocks.forEach(({ numbers }, b) => {
      for (let i = 0; i < lengths[b]!; i++) {
        const caller = Math.floor(numbers[4 * i + 2]! / PARTS)
        while (ends.length <= caller) ends.push(0)
        ends[caller]!++
      }
    })
    let sum = 0
    for (let caller = 0; caller < ends.length; caller++) {
      const count = ends[caller]!
      ends[caller] = sum
      sum += count
    }
    const calls = { caller: 0, times: new Float64Array(sum), costs: new Uint32Array(sum), from: 0, to: 0 }
    blocks.forEach(({ times, numbers }, b) => {
      for (let i = 0; i < lengths[b]!; i++) {
        const to = ends[Math.floor(numbers[4 * i + 2]! / PARTS)]!++
        calls.times[to] = times[2 * i]!
        calls.costs[to] = numbers[4 * i + 3]!
      }
    })
    for (let caller = 0; caller < ends.length; caller++) {
      calls.caller = caller * PARTS + index
      calls.from = calls.to
      calls.to = ends[caller]!
      if (calls.to > calls.from) visit(calls)
    }
  }
}

const PARTS = 64
const BLOCK_CALLS = 4096

/** The block of a part that is being filled: for each call its instant, and in the other half of 16 bytes caller and cost. */
class Part {
  readonly bytes = new Uint8Array(16 * BLOCK_CALLS)
  readonly times = new Float64Array(this.bytes.buffer)
  readonly numbers = new Uint32Array(this.bytes.buffer)
  filled = 0
  readonly blocks: number[] = []
}

function wordsOf({ buffer }: Uint8Array): { readonly times: Float64Array; readonly numbers: Uint32Array } {
  return { times: new Float64Array(buffer), numbers: new Uint32Array(buffer) }
}

/** A shelf in memory. */
export function memoryShelf(): Shelf {
  const blocks: Uint8Array[] = []
  return { write: (block) => void blocks.push(block.slice()), read: (index) => blocks[index]! }
}
