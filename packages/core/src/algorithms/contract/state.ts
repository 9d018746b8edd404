import { Ring } from './ring.js'

/**
 * A view of the cells of one key under one policy, and of its ring for logs. A store keeps one of these per policy and points
 * it at a key, so that a decision allocates nothing.
 */
export class State {
  cells: Float64Array
  base: number
  ring: Ring

  constructor(cells: Float64Array, base = 0, ring = new Ring()) {
    this.cells = cells
    this.base = base
    this.ring = ring
  }

  get(cell: number): number {
    return this.cells[this.base + cell]!
  }

  set(cell: number, value: number): void {
    this.cells[this.base + cell] = value
  }
}
