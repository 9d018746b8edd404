import type { Policy, View } from '../../policy.js'
import type { Ring } from '../../ring.js'
import { State } from '../../state.js'
import type { Undo } from './bookings.js'
import { type Page, Slots } from './slots.js'

/** Cell 0 of every slot is the last booked instant; the policies' cells follow in declared order. */
const HEADER_CELLS = 1

/** A table's slots, and the one that is being read: one State per policy, all pointing into it. */
export class Cursor {
  readonly slots: Slots
  /** Scratch: the earliest instant under each policy. */
  readonly instants: number[] = []
  readonly #states: State[] = []
  readonly #offsets: number[] = []
  readonly #withRing: State[] = []
  readonly #stride: number
  #page: Page
  #base = 0

  constructor(policies: readonly Policy[]) {
    let stride = HEADER_CELLS
    for (const policy of policies) {
      this.#offsets.push(stride)
      stride += policy.algorithm.cells(policy)
    }
    this.#stride = stride
    this.slots = new Slots(stride, policies.filter((policy) => policy.algorithm.ring).length)
    this.#page = this.slots.pageOf(0)
    for (const { algorithm } of policies) {
      const state = new State(this.#page.cells)
      this.#states.push(state)
      if (algorithm.ring) this.#withRing.push(state)
    }
    this.moveTo(0)
  }

  moveTo(slot: number): void {
    const page = (this.#page = this.slots.pageOf(slot))
    const base = (this.#base = this.slots.baseOf(slot))
    for (let i = 0; i < this.#states.length; i++) {
      const state = this.#states[i]!
      state.cells = page.cells
      state.base = base + this.#offsets[i]!
    }
    const firstRing = this.slots.ringBaseOf(slot)
    for (let i = 0; i < this.#withRing.length; i++) this.#withRing[i]!.ring = page.rings[firstRing + i]!
  }

  /** The last booked instant of the key. */
  get last(): number {
    return this.#page.cells[this.#base]!
  }

  set last(instant: number) {
    this.#page.cells[this.#base] = instant
  }

  earliest(policies: readonly Policy[], i: number, from: number, cost: number): number {
    const policy = policies[i]!
    return policy.algorithm.earliest(this.#states[i]!, policy, from, cost)
  }

  admit(policies: readonly Policy[], at: number, cost: number): void {
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      policy.algorithm.admit(this.#states[i]!, policy, at, cost)
    }
  }

  view(policies: readonly Policy[], i: number, now: number, view: View): void {
    const policy = policies[i]!
    policy.algorithm.view(this.#states[i]!, policy, now, view)
  }

  /** The key's cells, in place. */
  cells(): Float64Array {
    return this.#page.cells.subarray(this.#base, this.#base + this.#stride)
  }

  rings(): readonly Ring[] {
    return this.#withRing.map((state) => state.ring)
  }

  restore(undo: Undo): void {
    this.cells().set(undo.cells)
    this.rings().forEach((ring, i) => ring.restore(undo.marks[i]!))
  }
}
