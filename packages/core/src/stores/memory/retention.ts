import type { View } from '../../policy.js'
import type { Table } from './table.js'

/*
 * Which keys of a table may go. A key whose allowance is full again says nothing that an absent key would not, so it
 * is freed by a hand that walks the slots a few at a time. When the store is full of keys that still say something,
 * the one that says least goes: the fuller its allowance, the sooner. Exhausted keys go last, else a flood of new
 * keys would set limited callers free.
 */
export class Retention {
  readonly #table: Table
  readonly #view: View = { remaining: 0, resetAt: 0 }
  #hand = 0
  #random = 0x9e3779b9

  constructor(table: Table) {
    this.#table = table
  }

  /** Looks at the next `count` slots and frees those that are full again; returns how many. */
  sweep(count: number, now: number): number {
    const { slots } = this.#table.cursor
    let freed = 0
    for (let i = 0; i < count && slots.size > 0; i++) {
      this.#hand = this.#hand >= slots.top ? 1 : this.#hand + 1
      if (slots.keyAt(this.#hand) === undefined || this.#hardship(this.#hand, now) > 0) continue
      this.#table.release(this.#hand)
      freed++
    }
    return freed
  }

  /** Forgets the key that loses least of those sampled, and returns it. */
  evict(now: number): string {
    const { slots } = this.#table.cursor
    let victim = 0
    let least = Infinity
    for (let tries = 0; tries < SAMPLE || (least >= EXHAUSTED && tries < LONG_SAMPLE); tries++) {
      const slot = this.#anySlot(slots.top)
      if (slots.keyAt(slot) === undefined) continue
      const hardship = this.#hardship(slot, now)
      if (victim !== 0 && hardship >= least) continue
      victim = slot
      least = hardship
      if (least === 0) break
    }
    while (victim === 0 || slots.keyAt(victim) === undefined) victim = victim >= slots.top ? 1 : victim + 1
    const key = slots.keyAt(victim)!
    this.#table.lose(victim)
    return key
  }

  /** 0: full again. Up to 1: the part that is spent. Up to 2: exhausted, the longer the more. 2: banned or booked. */
  #hardship(slot: number, now: number): number {
    const { cursor, barriers, slowest } = this.#table
    cursor.moveTo(slot)
    if (cursor.last > now || barriers.until(slot) > now) return 2
    let worst = 0
    for (let i = 0; i < slowest.length; i++) {
      cursor.view(slowest, i, now, this.#view)
      const wait = this.#view.resetAt - now
      if (wait <= 0) continue
      const spent = 1 - this.#view.remaining / slowest[i]!.capacity
      worst = Math.max(worst, this.#view.remaining === 0 ? EXHAUSTED + wait / (wait + 1) : spent)
    }
    return worst
  }

  #anySlot(top: number): number {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0
    return 1 + Math.floor((this.#random / 2 ** 32) * top)
  }
}

const EXHAUSTED = 1
const SAMPLE = 5
const LONG_SAMPLE = 64
