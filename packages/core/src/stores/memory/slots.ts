import { Ring } from '../../ring.js'
import { KeyIndex } from './key-index.js'

/**
 * Room for the state of many keys: a slot is `stride` cells in a Float64Array, and its rings. Slots lie in pages,
 * so that growing copies nothing. Slot 0 is never given out: it stays blank and stands for every key not held.
 */
export class Slots {
  /** Keys held. */
  size = 0
  /** Slots that were ever given out are 1 to `top`. */
  top = 0
  readonly #stride: number
  readonly #ringsPerKey: number
  readonly #index = new KeyIndex()
  #pages: Page[]
  /** Head of the list of free slots, each naming the next one in its first cell; 0 ends it. */
  #free = 0

  constructor(stride: number, ringsPerKey: number) {
    this.#stride = stride
    this.#ringsPerKey = ringsPerKey
    this.#pages = [this.#newPage()]
    this.#fillRings(this.#pages[0]!, 0)
  }

  /** The slot of `key`, or the blank slot 0. */
  find(key: string): number {
    return this.#index.get(key)
  }

  /** The key in `slot`, undefined when the slot is free. */
  keyAt(slot: number): string | undefined {
    return this.pageOf(slot).keys[slot & PAGE_MASK]
  }

  pageOf(slot: number): Page {
    return this.#pages[slot >>> PAGE_BITS]!
  }

  /** Index of the slot's first cell in its page. */
  baseOf(slot: number): number {
    return (slot & PAGE_MASK) * this.#stride
  }

  /** Index of the slot's first ring in its page. */
  ringBaseOf(slot: number): number {
    return (slot & PAGE_MASK) * this.#ringsPerKey
  }

  /** A blank slot for a key that has none. */
  allocate(key: string): number {
    const slot = this.#free || ++this.top
    if (slot >>> PAGE_BITS === this.#pages.length) this.#pages.push(this.#newPage())
    const page = this.pageOf(slot)
    const base = this.baseOf(slot)
    this.#free = page.cells[base]! // 0 in a slot that was never used, and then the list is empty
    page.cells[base] = 0
    page.keys[slot & PAGE_MASK] = key
    this.#fillRings(page, this.ringBaseOf(slot))
    this.#index.set(key, slot)
    this.size++
    return slot
  }

  release(slot: number): void {
    const page = this.pageOf(slot)
    const base = this.baseOf(slot)
    this.#index.delete(page.keys[slot & PAGE_MASK]!)
    page.keys[slot & PAGE_MASK] = undefined
    page.cells.fill(0, base, base + this.#stride)
    page.rings.fill(undefined, this.ringBaseOf(slot), this.ringBaseOf(slot) + this.#ringsPerKey)
    page.cells[base] = this.#free
    this.#free = slot
    if (--this.size === 0) this.#shrink()
  }

  #shrink(): void {
    this.#pages.length = 1
    this.#pages[0]!.cells.fill(0)
    this.top = 0
    this.#free = 0
  }

  #newPage(): Page {
    return {
      cells: new Float64Array(PAGE_SIZE * this.#stride),
      keys: Array<undefined>(PAGE_SIZE).fill(undefined),
      rings: Array<undefined>(PAGE_SIZE * this.#ringsPerKey).fill(undefined),
    }
  }

  #fillRings(page: Page, first: number): void {
    for (let i = 0; i < this.#ringsPerKey; i++) page.rings[first + i] = new Ring()
  }
}

export interface Page {
  readonly cells: Float64Array
  readonly keys: (string | undefined)[]
  readonly rings: (Ring | undefined)[]
}

const PAGE_BITS = 6
const PAGE_SIZE = 1 << PAGE_BITS
const PAGE_MASK = PAGE_SIZE - 1
