/**
 * A view of the cells of one key under one policy, and of its ring for logs. A store keeps one of these per policy and points
 * it at a key, so that a decision allocates nothing.
 */
export class State {
  /** A view of cells that begins at `base`; a store moves it on to other keys. */
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

  /** The i-th newest instant, 0 being the newest; -Infinity if there is none. */
  at(i: number): number {
    return i < this.size ? this.#slots[(this.#head - 1 - i) & (this.#slots.length - 1)]! : -Infinity
  }

  /**
   * Appends `n` entries of one instant, which must not be before the newest. After `mark`, the entries that they
   * overwrite are kept.
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

  /** Removes `n` entries, from the i-th newest to older ones. Newer entries close the gap. */
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

  /** Begins to record the entries that `push` overwrites, for `restore`. */
  mark(): RingMark {
    this.#overwritten = []
    return { head: this.#head, size: this.size, slots: this.#slots, overwritten: this.#overwritten }
  }

  /** Ends the recording that `mark` began. */
  seal(): void {
    this.#overwritten = undefined
  }

  /**
   * Restores the entries as of `mark`. Valid only if nothing was pushed after `seal`. A ring that has grown since gets its former
   * slots back, in which nothing was overwritten: the overwritten entries of earlier marks belong there.
   */
  restore(mark: RingMark): void {
    const { head, size, slots, overwritten } = mark
    const mask = slots.length - 1
    if (slots === this.#slots) overwritten.forEach((instant, i) => (slots[(head + i) & mask] = instant))
    this.#slots = slots
    this.#head = head
    this.size = size
  }

  /** Doubles the slots until `n` more fit. Each entry's place follows from its number modulo the length, so all move. */
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
