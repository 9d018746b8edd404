/**
 * A view of the cells of one key under one policy, and of its ring for logs. A store keeps one of these per policy and points
 * it at a key, so that a decision allocates nothing.
 */
export class State {
  /**
   * Makes a view of one key's state: of its cells, the numbers that the algorithm keeps, which begin at index `base` of `cells`,
   * and of its `ring`, the instants that a sliding log keeps. `cells` may hold the numbers of many keys. All three can be
   * changed, so that a store points one view at key after key and a decision allocates nothing.
   */
  constructor(
    public cells: Float64Array,
    public base = 0,
    public ring = new Ring(),
  ) {}

  /** The number in a cell of the key at which the view points. */
  get(cell: number): number {
    return this.cells[this.base + cell]!
  }

  /** Writes the number of a cell of the key at which the view points. */
  set(cell: number, value: number): void {
    this.cells[this.base + cell] = value
  }
}

/**
 * Most entries of a ring that one call writes or moves where other callers would wait meanwhile: Redis runs one script at a
 * time. `release` keeps to it in every store, so that all give the same answers.
 */
export const MOST_ENTRIES = 1000

/**
 * Instants in the order in which they were booked, one entry per unit, 8 bytes each. It grows by doubling. Dropped entries stay
 * in their slots until they are overwritten, which makes `restore` possible.
 */
export class Ring {
  size = 0
  /** Entries ever pushed, less those removed; the next entry goes into slot `head` modulo the length. */
  #head = 0
  #slots: number[] = []
  #overwritten: number[] | undefined

  /** The instant of the i-th newest entry, counted from 0; -Infinity, which counts in no window, if there are not so many. */
  at(i: number): number {
    return i < this.size ? this.#slots[(this.#head - 1 - i) & (this.#slots.length - 1)]! : -Infinity
  }

  /**
   * Appends `n` entries of one instant, which must not be before the newest. The slots form a ring whose length is a power of
   * two, so `& mask` is the place of an entry's number in it. While a recording is open (from `mark` to `seal`), what the slots
   * held before is noted, so that `restore` can put it back.
   */
  push(instant: number, n: number): void {
    if (this.size + n > this.#slots.length) this.#grow(n)
    const mask = this.#slots.length - 1
    for (let i = 0; i < n; i++) {
      const slot = this.#head++ & mask
      this.#overwritten?.push(this.#slots[slot]!)
      this.#slots[slot] = instant
    }
    this.size += n
  }

  /**
   * Removes `n` entries: the i-th newest, counted from 0, and the next older ones. The `i` newer entries move `n` slots towards
   * the older, which closes the gap. Slots form a ring, hence `& mask`.
   */
  remove(i: number, n: number): void {
    const mask = this.#slots.length - 1
    for (let k = i; k > 0; k--) {
      this.#slots[(this.#head - k - n) & mask] = this.#slots[(this.#head - k) & mask]!
    }
    this.#head -= n
    this.size -= n
  }

  /** Drops all but the `n` newest entries. */
  keep(n: number): void {
    this.size = n
  }

  /** Returns another ring (a list of instants in slots that are used in turn) with the same entries; changes of one leave the other. */
  copy(): Ring {
    const ring = new Ring()
    ring.size = this.size
    ring.#head = this.#head
    ring.#slots = this.#slots.slice()
    return ring
  }

  /**
   * Begins a recording before a booking, which is a charge for a call that waits and may be cancelled. Returns what `restore`
   * needs to bring the present entries back. Until `seal` ends the recording, `push` adds to it what it overwrites, so that no
   * copy of all entries is needed.
   */
  mark(): RingMark {
    this.#overwritten = []
    return { head: this.#head, size: this.size, slots: this.#slots, overwritten: this.#overwritten }
  }

  /** Ends the recording that `mark` began. */
  seal(): void {
    this.#overwritten = undefined
  }

  /**
   * Restores the entries as of `mark`. Valid only if nothing was pushed after `seal`, the end of the recording. Entries that were
   * overwritten since return to their slots. A ring that has grown since, by copying into new slots, gets its former
   * ones back: nothing was overwritten in them, and earlier marks, which may be restored next, refer to them.
   */
  restore(mark: RingMark): void {
    const { head, size, slots, overwritten } = mark
    const mask = slots.length - 1
    if (slots === this.#slots) overwritten.forEach((instant, i) => (slots[(head + i) & mask] = instant))
    this.#slots = slots
    this.#head = head
    this.size = size
  }

  /**
   * Makes new slots, doubled in number until `n` more entries fit, and copies all old ones into them. Dropped entries are copied
   * too, though none of them counts again there: `restore` returns to the old slots for a mark from before the growth. Each entry
   * lies at its number modulo the length, a power of two (hence the `&`), so its place changes.
   */
  #grow(n: number): void {
    const old = this.#slots
    let length = Math.max(4, old.length)
    while (length < old.length + n) length *= 2
    this.#slots = Array<number>(length).fill(-Infinity)
    for (let i = this.#head - old.length; i < this.#head; i++) {
      this.#slots[i & (length - 1)] = old[i & (old.length - 1)]!
    }
  }
}

export interface RingMark {
  readonly head: number
  readonly size: number
  readonly slots: number[]
  readonly overwritten: number[]
}
