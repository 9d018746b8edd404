/*
 * A log names its callers in any order, so a search costs what it takes to read memory that lies in no cache. A slot is found
 * by 64 bits of the key's hash and holds the caller's number; keys are not kept. The hash begins with random numbers, so that
 * no log can be written whose callers collide: of 1,000,000 callers two do with a chance of 1 in 30,000,000.
 */

/** Callers by number, in the order in which they first called. */
export class Callers {
  /** How many there are. */
  size = 0
  readonly #seeds = crypto.getRandomValues(new Int32Array(2))
  #slots = new Int32Array(SLOT * 1024)

  /**
   * Returns the number of a caller's key, and gives a new key the next one: 0, 1, 2 and so on. The key is not kept, only its hash,
   * in two halves. The hash begins with random seeds, so that no log can be written whose keys collide.
   */
  numberFor(key: string): number {
    let [half1, half2] = [this.#seeds[0]! ^ key.length, this.#seeds[1]!]
    for (let i = 0; i < key.length; i++) {
      const unit = key.charCodeAt(i)
      half1 = Math.imul(half1 ^ unit, 0x9e3779b1)
      half1 ^= half1 >>> 15
      half2 = Math.imul(half2 ^ unit, 0x85ebca6b)
      half2 ^= half2 >>> 13
    }
    const slots = this.#slots
    const slot = slotOf(slots, half1, half2)
    if (slots[slot + NUMBER]! > 0) return slots[slot + NUMBER]! - 1
    slots[slot] = half1
    slots[slot + HALF2] = half2
    slots[slot + NUMBER] = ++this.size
    const isHalfFull = 2 * SLOT * this.size > slots.length
    if (isHalfFull) this.#grow()
    return this.size - 1
  }

  /** Moves all callers to a table of twice the size. So at least half of the slots stay free, and searches short. */
  #grow(): void {
    const before = this.#slots
    const slots = (this.#slots = new Int32Array(2 * before.length))
    for (let i = 0; i < before.length; i += SLOT) {
      const isTaken = before[i + NUMBER]! > 0
      if (isTaken) slots.set(before.subarray(i, i + SLOT), slotOf(slots, before[i]!, before[i + HALF2]!))
    }
  }
}

/**
 * The index of the slot that has a hash, of two halves, or of the free slot where the hash belongs. The search begins where the
 * first half points, and goes on to the next slot while it meets other hashes. The length of the array is a power of 2, so that
 * `lastSlot` as a mask makes an index of any number.
 */
function slotOf(slots: Int32Array, half1: number, half2: number): number {
  const lastSlot = slots.length - SLOT
  let slot = (SLOT * half1) & lastSlot
  while (slots[slot + NUMBER] !== 0 && (slots[slot] !== half1 || slots[slot + HALF2] !== half2))
    slot = (slot + SLOT) & lastSlot
  return slot
}

/** A slot takes four numbers of the array: the halves of the hash, the caller's number plus 1 (0 in a free slot), and one unused. */
const SLOT = 4
const [HALF2, NUMBER] = [1, 2] as const
