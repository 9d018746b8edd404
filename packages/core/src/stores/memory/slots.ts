import { Ring } from '../../algorithms/contract/ring.js'
import { KeyIndex } from './key-index.js'

/**
 * The memory for the state of many keys: a slot is `stride` cells in a Float64Array, and the rings of the key. Slots lie in
 * pages, so that growth copies only the first page, which begins small. Slot 0 is never allocated: it stays blank and stands
 * for every key that is not held.
 */
export class Slots {
  /** Keys held. */
  size = 0
  /** The largest slot that was ever allocated. */
  top = 0
  readonly #stride: number
  readonly #ringsPerKey: number
  readonly #index = new KeyIndex()
  #pages: Page[]
  /** Head of the list of free slots. The first cell of each holds the next one; 0 ends the list. */
  #free = 0

  constructor(stride: number, ringsPerKey: number) {
    this.#stride = stride
    this.#ringsPerKey = ringsPerKey
    this.#pages = [this.#firstPage()]
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

  /** Records the number of the policy list under which the key was decided, and counts up to seven denials. */
  record(slot: number, list: number, isDenied: boolean): void {
    const { notes } = this.pageOf(slot)
    const i = slot & PAGE_MASK
    const denials = notes[i]! & MOST_DENIALS
    const note = (list << DENIAL_BITS) | (isDenied && denials < MOST_DENIALS ? denials + 1 : denials)
    if (notes[i] !== note) notes[i] = note
  }

  listOf(slot: number): number {
    return this.pageOf(slot).notes[slot & PAGE_MASK]! >>> DENIAL_BITS
  }

  denialsOf(slot: number): number {
    return this.pageOf(slot).notes[slot & PAGE_MASK]! & MOST_DENIALS
  }

  /** Allocates a blank slot for a key that has none. */
  allocate(key: string): number {
    const slot = this.#free || ++this.top
    if (slot >>> PAGE_BITS === this.#pages.length) this.#pages.push(this.#newPage(PAGE_SIZE))
    const page = this.pageOf(slot)
    const base = this.baseOf(slot)
    if (base === page.cells.length) grow(page)
    this.#free = page.cells[base]! // 0 in a slot that was never used, and then the list is empty
    page.cells[base] = 0
    page.keys[slot & PAGE_MASK] = key
    this.#fillRings(page, this.ringBaseOf(slot))
    this.#index.set(key, slot)
    this.size++
    return slot
  }

  /** Removes the key of a slot and blanks the slot, for another key. */
  free(slot: number): void {
    const page = this.pageOf(slot)
    const base = this.baseOf(slot)
    this.#index.delete(page.keys[slot & PAGE_MASK]!)
    page.keys[slot & PAGE_MASK] = undefined
    page.notes[slot & PAGE_MASK] = 0
    page.cells.fill(0, base, base + this.#stride)
    for (let i = 0; i < this.#ringsPerKey; i++) page.rings[this.ringBaseOf(slot) + i] = undefined
    page.cells[base] = this.#free
    this.#free = slot
    if (--this.size === 0) this.#shrink()
  }

  #shrink(): void {
    this.#index.clear()
    this.#pages = [this.#firstPage()]
    this.top = 0
    this.#free = 0
  }

  #firstPage(): Page {
    const page = this.#newPage(FIRST_SLOTS)
    page.keys.push(undefined)
    this.#fillRings(page, 0)
    return page
  }

  #newPage(slots: number): Page {
    return {
      cells: new Float64Array(slots * this.#stride),
      notes: new Uint16Array(slots),
      keys: [],
      rings: [],
    }
  }

  #fillRings(page: Page, first: number): void {
    for (let i = 0; i < this.#ringsPerKey; i++) page.rings[first + i] = new Ring()
  }
}

function grow(page: Page): void {
  const { cells, notes } = page
  page.cells = new Float64Array(2 * cells.length)
  page.cells.set(cells)
  page.notes = new Uint16Array(2 * notes.length)
  page.notes.set(notes)
}

export interface Page {
  cells: Float64Array
  /** For each key the count of denials in 3 bits, and above them the number of the list it was last decided with. */
  notes: Uint16Array
  readonly keys: (string | undefined)[]
  readonly rings: (Ring | undefined)[]
}

const FIRST_SLOTS = 64
const PAGE_BITS = 12
const PAGE_SIZE = 1 << PAGE_BITS
const PAGE_MASK = PAGE_SIZE - 1
const DENIAL_BITS = 3
const MOST_DENIALS = 7
