import type { Charge, Policy } from '../../algorithms/contract/policy.js'
import { type Ring, State } from '../../algorithms/contract/state.js'
import type { Undo } from './bookings.js'
import { type Page, Rows } from './rows.js'

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
  /** The state, if there is one policy, as most limiters have: it is moved without a loop. */
  readonly #only: State | undefined
  readonly #hasRings: boolean
  readonly #stride: number

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
    this.#hasRings = this.#withRing.length > 0
    this.#only = this.states.length === 1 ? this.states[0] : undefined
    this.moveTo(0)
  }

  moveTo(row: number): void {
    const page = this.rows.pageOf(row)
    const base = this.rows.baseOf(row)
    const { cells } = page
    const only = this.#only
    if (only !== undefined) {
      if (only.cells !== cells) only.cells = cells
      only.base = base + HEADER_CELLS
    } else {
      for (let i = 0; i < this.states.length; i++) {
        const state = this.states[i]!
        if (state.cells !== cells) state.cells = cells
        state.base = base + this.#offsets[i]!
      }
    }
    if (this.#hasRings) this.#moveRingsTo(page, this.rows.ringBaseOf(row))
  }

  /** The instant at which the state of the current key began. */
  get born(): number {
    const { cells, base } = this.states[0]!
    return cells[base - HEADER_CELLS + BORN]!
  }

  set born(instant: number) {
    const { cells, base } = this.states[0]!
    cells[base - HEADER_CELLS + BORN] = instant
  }

  /** Charges `cost` at `at` under all policies. Returns the fewest units that took effect under one of them. */
  admit(policies: readonly Policy[], at: number, cost: number): number {
    let effect = Infinity
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      const units = policy.algorithm.admit(this.states[i]!, policy, at, cost)
      if (units < effect) effect = units
    }
    return effect
  }

  /** Releases units of a charge under all policies. Returns the fewest units that took effect under one of them. */
  release(policies: readonly Policy[], now: number, charge: Charge, units: number): number {
    let effect = Infinity
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      effect = Math.min(effect, policy.algorithm.release(this.states[i]!, policy, now, charge, units))
    }
    return effect
  }

  /** The cells of the current key, in place. */
  cells(): Float64Array {
    const { cells, base } = this.states[0]!
    const first = base - HEADER_CELLS
    return cells.subarray(first, first + this.#stride)
  }

  rings(): readonly Ring[] {
    return this.#withRing.map((state) => state.ring)
  }

  #moveRingsTo({ rings }: Page, first: number): void {
    for (let i = 0; i < this.#withRing.length; i++) this.#withRing[i]!.ring = rings[first + i]!
  }

  restore(undo: Undo): void {
    this.cells().set(undo.cells)
    this.rings().forEach((ring, i) => ring.restore(undo.marks[i]!))
  }
}
