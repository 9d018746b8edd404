import type { Charge, Policy, View } from '../../algorithms/contract/policy.js'
import { Ring, State } from '../../algorithms/contract/state.js'
import { copiedText } from '../../values/key.js'
import type { Undo } from './bookings.js'
import { KeyIndex } from './key-index.js'

/** Whether a call is noted as denied, in `Rows.record`. */
export const DENIED = true
export const NOT_DENIED = false

/** The first cell of every row; the policies' cells follow in declared order. */
const BORN = 0
const HEADER_CELLS = 1

/** The rows of a table, and one State per policy that points into the current row. */
export class Cursor {
  readonly rows: Rows
  /** Scratch: the earliest instant under each policy. */
  readonly instants: number[] = []
  /** The states of the current key, one per policy. */
  readonly states: State[] = []
  readonly #offsets: number[] = []
  readonly #withRing: State[] = []
  /** The state, if there is one policy without a ring, as most limiters have: it is pointed at a row without a loop. */
  readonly #only: State | undefined = undefined
  readonly #stride: number

  /**
   * Lays a row out: one header cell, then the cells that each policy's algorithm needs, in the order of the policies. `stride` is
   * the number of cells of a row, and `#offsets` the first cell of each policy. Makes one State per policy, a view of its cells
   * that is pointed at a row by `select`; a log's state has a ring too, a list of instants. It begins at row 0, which is blank.
   */
  constructor(policies: readonly Policy[]) {
    let stride = HEADER_CELLS
    for (const policy of policies) {
      this.#offsets.push(stride)
      stride += policy.algorithm.cells(policy)
    }
    this.#stride = stride
    this.rows = new Rows(stride, policies.filter((policy) => policy.algorithm.ring).length)
    for (const { algorithm } of policies) {
      const state = new State(this.rows.pageOf(0).cells)
      this.states.push(state)
      if (algorithm.ring) this.#withRing.push(state)
    }
    if (this.states.length === 1 && this.#withRing.length === 0) this.#only = this.states[0]
    this.select(0)
  }

  /**
   * Makes `row` the current one: each policy's State, a view of cells, is pointed at the row's. Rows lie in pages; the upper bits
   * of a row's number are its page. `#only` is the State if there is one policy without a ring, as usual: it needs no loop.
   */
  select(row: number): void {
    const page = this.rows.pages[row >>> PAGE_BITS]!
    const only = this.#only
    const base = (row & PAGE_MASK) * this.#stride
    if (only !== undefined) {
      only.cells = page.cells
      only.base = base + HEADER_CELLS
    } else this.#selectAll(page, base, row & PAGE_MASK)
  }

  /**
   * Points the State of each policy at a row of this page: at its cells, of which the first lies at `base`, and at its rings
   * (lists of instants), if the algorithm keeps one. `row` is the number within the page.
   */
  #selectAll({ cells, rings }: RowPage, base: number, row: number): void {
    for (let i = 0; i < this.states.length; i++) {
      const state = this.states[i]!
      if (state.cells !== cells) state.cells = cells
      state.base = base + this.#offsets[i]!
    }
    const { length } = this.#withRing
    for (let i = 0; i < length; i++) this.#withRing[i]!.ring = rings[row * length + i]!
  }

  /**
   * The instant, in microseconds, at which the current key's state began: that of the last charge that found the key full. Charges
   * that were decided earlier are not in the state. It lies in the header cell, in front of the cells of the first policy.
   */
  get born(): number {
    const { cells, base } = this.states[0]!
    return cells[base - HEADER_CELLS + BORN]!
  }

  /** Whether the allowance of the current key is full at `now` under all policies: none says that it will be full only later. */
  isFull(policies: readonly Policy[], now: number): boolean {
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      policy.algorithm.view(this.states[i]!, policy, now, view)
      if (view.resetAt > now) return false
    }
    return true
  }

  /** Whether `cost` units of the current key pass at `now` under each of the policies. */
  fits(policies: readonly Policy[], now: number, cost: number): boolean {
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      if (policy.algorithm.earliest(this.states[i]!, policy, now, cost) > now) return false
    }
    return true
  }

  /**
   * Begins the state of the current key anew, because a charge at `now` finds its allowance full. BORN becomes `now`, so that
   * charges decided earlier give nothing back, and each algorithm forgets what it recorded of them.
   */
  renew(policies: readonly Policy[], now: number): void {
    const { cells, base } = this.states[0]!
    cells[base - HEADER_CELLS + BORN] = now
    for (let i = 0; i < policies.length; i++) policies[i]!.algorithm.renew?.(this.states[i]!, policies[i]!)
  }

  /**
   * Charges `cost` units of the current key at the instant `at` under all policies; a negative cost gives units back. Returns the
   * fewest units that took effect under one of them, as policies cap what they record. `counts` gets three numbers per policy: the
   * units that count now, those that took effect, and the instant at which all are given back.
   */
  admit(policies: readonly Policy[], at: number, cost: number, counts?: number[]): number {
    let effect = Infinity
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      const units = policy.algorithm.admit(this.states[i]!, policy, at, cost)
      if (units < effect) effect = units
      if (!counts) continue
      policy.algorithm.view(this.states[i]!, policy, at, view)
      counts.push(policy.capacity - view.remaining, units, view.resetAt)
    }
    return effect
  }

  /**
   * Gives back up to `units` units of one charge of the current key under all policies, as far as they still count at `now`.
   * Returns the fewest units that took effect under one of them.
   */
  release(policies: readonly Policy[], now: number, charge: Charge, units: number): number {
    if (units === 0) return 0 // which would still move the state to now, and round it
    let effect = Infinity
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      effect = Math.min(effect, policy.algorithm.release(this.states[i]!, policy, now, charge, units))
    }
    return effect
  }

  /** The current key's cells, the header first. A view of the memory and no copy: what is written there changes the state. */
  cells(): Float64Array {
    const { cells, base } = this.states[0]!
    const first = base - HEADER_CELLS
    return cells.subarray(first, first + this.#stride)
  }

  /** The rings (growing lists of slots) of the current key, one for each of its policies that has one. */
  rings(): readonly Ring[] {
    return this.#withRing.map((state) => state.ring)
  }

  /**
   * Clears the state of the current key: all its cells become 0 and its rings (lists of instants) empty, as if it were never
   * used.
   */
  clear(): void {
    this.cells().fill(0)
    for (const ring of this.rings()) ring.keep(0)
  }

  /**
   * Calls `look` with the key in `row` as the current one, and returns its result; what it changes of the state is put back. Numbers
   * in cells are written back. Rings are copied for `look`, and selecting the row once more brings the real ones back: bookings refer to
   * these, and would not notice that something was written and put back.
   */
  tentatively<T>(row: number, look: (cursor: this) => T): T {
    this.select(row)
    const cells = this.cells().slice()
    for (const state of this.#withRing) state.ring = state.ring.copy()
    try {
      return look(this)
    } finally {
      this.cells().set(cells)
      this.select(row)
    }
  }

  /**
   * Undoes a booking of the current key: puts back all cells and ring entries that it replaced, of which `undo` holds copies.
   * Only BORN, the instant at which the state began, stays: if the booking began it anew, earlier charges still give nothing
   * back.
   */
  restore(undo: Undo): void {
    const { born } = this
    this.cells().set(undo.cells)
    this.cells()[BORN] = born
    this.rings().forEach((ring, i) => ring.restore(undo.marks[i]!))
  }
}

/**
 * The memory for the state of many keys: a row is `stride` cells in a Float64Array, and the rings of the key. Rows lie in
 * pages, so that growth copies only the first page, which begins small. Row 0 is never allocated: it stays blank and stands
 * for every key that is not held.
 */
class Rows {
  /** Keys held. */
  size = 0
  /** The largest row that was ever allocated. */
  top = 0
  #index = new KeyIndex(this)
  pages: RowPage[]
  /** Head of the list of free rows. The first cell of each holds the next one; 0 ends the list. */
  #free = 0

  /**
   * The memory of a table. `stride` is the number of cells of a row, and `ringsPerKey` how many policies keep a ring, a growing
   * list of instants. Begins with one small page.
   */
  constructor(
    private readonly stride: number,
    private readonly ringsPerKey: number,
  ) {
    this.pages = [this.#firstPage()]
  }

  /** The number of the row with the state of `key`; 0, the blank row, if the key has none. */
  find(key: string): number {
    return this.#index.get(key)
  }

  /** The key whose state is in `row`; undefined when the row is free. */
  keyAt(row: number): string | undefined {
    return this.pageOf(row).keys[row & PAGE_MASK]
  }

  /**
   * The page that holds `row`. A page has 4096 rows: the upper bits of a row's number are its page, the lower its place in it.
   */
  pageOf(row: number): RowPage {
    return this.pages[row >>> PAGE_BITS]!
  }

  /** The index of the row's first cell among the cells of its page. */
  baseOf(row: number): number {
    return (row & PAGE_MASK) * this.stride
  }

  /** The index of the row's first ring (list of instants) among the rings of its page. */
  ringBaseOf(row: number): number {
    return (row & PAGE_MASK) * this.ringsPerKey
  }

  /**
   * Notes that the key in `row` was decided under policy list number `list`, and counts a denial, up to seven. Eviction needs
   * both: the limits of that list say how much of its allowance a key has spent, and of exhausted keys those with the fewest
   * denials go first. Both share one 16-bit number, whose lowest three bits are the count.
   */
  record(row: number, list: number, isDenied: boolean): void {
    const { notes } = this.pageOf(row)
    const i = row & PAGE_MASK
    const denials = notes[i]! & MOST_DENIALS
    const note = (list << DENIAL_BITS) | (isDenied && denials < MOST_DENIALS ? denials + 1 : denials)
    if (notes[i] !== note) notes[i] = note
  }

  /** The number of the policy list under which the key in `row` was last decided. */
  listOf(row: number): number {
    return this.pageOf(row).notes[row & PAGE_MASK]! >>> DENIAL_BITS
  }

  /** How often the key in `row` was denied; 7 stands for any more. */
  denialsOf(row: number): number {
    return this.pageOf(row).notes[row & PAGE_MASK]! & MOST_DENIALS
  }

  /**
   * Gives a new key a row, a free one or else the next that was never used, and adds the key to the index. Returns the row's number.
   * Free rows form a list: `#free` is the first, and the first cell of each holds the number of the next. A row that was never used
   * may need a new page, or a larger first page. The key is copied (`copiedText`): otherwise a longer text, of which it is a part, could
   * stay in memory.
   */
  allocate(callerKey: string): number {
    const key = copiedText(callerKey)
    const row = this.#free || ++this.top
    if (row >>> PAGE_BITS === this.pages.length) this.pages.push(this.#newPage(PAGE_SIZE))
    const page = this.pageOf(row)
    const base = this.baseOf(row)
    if (base === page.cells.length) grow(page)
    this.#free = page.cells[base]! // 0 in a row that was never used, and then the list is empty
    page.cells[base] = 0
    page.keys[row & PAGE_MASK] = key
    this.#fillRings(page, this.ringBaseOf(row))
    this.#index.add(key, row)
    this.size++
    return row
  }

  /**
   * Removes the key of a row, clears the row, and puts it first into the list of free rows: its first cell then holds the number of
   * the next free row. With the last key all memory is given up.
   */
  free(row: number): void {
    const page = this.pageOf(row)
    const base = this.baseOf(row)
    this.#index.delete(page.keys[row & PAGE_MASK]!, row)
    page.keys[row & PAGE_MASK] = undefined
    page.notes[row & PAGE_MASK] = 0
    page.cells.fill(0, base, base + this.stride)
    for (let i = 0; i < this.ringsPerKey; i++) page.rings[this.ringBaseOf(row) + i] = undefined
    page.cells[base] = this.#free
    this.#free = row
    if (--this.size === 0) this.#shrink()
  }

  /** Gives up the memory of all rows once there is no key: begins again with an empty index and one small page. */
  #shrink(): void {
    this.#index = new KeyIndex(this)
    this.pages = [this.#firstPage()]
    this.top = 0
    this.#free = 0
  }

  /** Makes a small first page. Its row 0, with no key and empty rings, stays blank: keys that have no row are decided on it. */
  #firstPage(): RowPage {
    const page = this.#newPage(FIRST_ROWS)
    page.keys.push(undefined)
    this.#fillRings(page, 0)
    return page
  }

  /** Makes a page of blank cells and notes for this many rows. Only the first page is made with few, and doubled as it fills. */
  #newPage(rows: number): RowPage {
    return { cells: new Float64Array(rows * this.stride), notes: new Uint16Array(rows), keys: [], rings: [] }
  }

  /**
   * Gives a key empty rings (lists of instants): one for each policy whose algorithm keeps one. They lie in the page's list of
   * rings from index `first` on.
   */
  #fillRings(page: RowPage, first: number): void {
    for (let i = 0; i < this.ringsPerKey; i++) page.rings[first + i] = new Ring()
  }
}

/**
 * Doubles the rows for which a page has memory, by larger copies of its cells and notes. Its keys and rings are lists that grow
 * by themselves. Only the first page begins small and is ever doubled.
 */
function grow(page: RowPage): void {
  const { cells, notes } = page
  page.cells = new Float64Array(2 * cells.length)
  page.cells.set(cells)
  page.notes = new Uint16Array(2 * notes.length)
  page.notes.set(notes)
}

interface RowPage {
  cells: Float64Array
  /** For each key the count of denials in 3 bits, and above them the number of the list it was last decided with. */
  notes: Uint16Array
  readonly keys: (string | undefined)[]
  readonly rings: (Ring | undefined)[]
}

const view: View = { remaining: 0, resetAt: 0 }

const FIRST_ROWS = 64
const PAGE_BITS = 12
const PAGE_SIZE = 1 << PAGE_BITS
const PAGE_MASK = PAGE_SIZE - 1
const DENIAL_BITS = 3
const MOST_DENIALS = 7
