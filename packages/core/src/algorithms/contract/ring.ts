/**
 * Instants in the order in which they were booked, one entry per unit, 8 bytes each. It grows by doubling;
 * what was dropped stays in its slot until it is written over, which is what makes `restore` possible.
 */
export class Ring {
  size = 0
  /** Entries ever pushed, less those dropped: the slot after the newest is `head` modulo the length. */
  #head = 0
  #slots: number[] = []
  #overwritten: number[] | undefined

  /** The i-th newest instant, 0 being the newest; -Infinity where there is none. */
  at(i: number): number {
    return i < this.size ? this.#slots[(this.#head - 1 - i) & (this.#slots.length - 1)]! : -Infinity
  }

  /** Appends `n` entries of the same instant, which must not be before the newest. */
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

  /** Takes `n` entries away, from the i-th newest one on to older ones. Those that are newer close the gap. */
  remove(i: number, n: number): void {
    const mask = this.#slots.length - 1
    for (let k = i; k > 0; k--) {
      this.#slots[(this.#head - k - n) & mask] = this.#slots[(this.#head - k) & mask]!
    }
    this.#head -= n
    this.size -= n
  }

  /** Forgets all but the `n` newest entries. */
  keep(n: number): void {
    this.size = n
  }

  /** From here on, until `restore` is called or the mark is forgotten, what `push` writes over is kept. */
  mark(): RingMark {
    this.#overwritten = []
    return { head: this.#head, size: this.size, overwritten: this.#overwritten }
  }

  /** Ends the recording that `mark` began. */
  seal(): void {
    this.#overwritten = undefined
  }

  /** Brings back the entries as they were at `mark`. Valid while nothing was pushed after `seal`. */
  restore(mark: RingMark): void {
    const mask = this.#slots.length - 1
    mark.overwritten.forEach((instant, i) => (this.#slots[(mark.head + i) & mask] = instant))
    this.#head = mark.head
    this.size = mark.size
  }

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
  readonly overwritten: number[]
}
