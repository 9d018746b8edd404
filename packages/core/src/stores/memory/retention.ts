import type { View } from '../../policy.js'
import type { Table } from './table.js'

/*
 * Which keys of a table may go. A key whose allowance is full again says nothing that an absent key would not, so it
 * is freed by a hand that walks the slots a few at a time. When the store is full of keys that still say something,
 * one goes that has spent little, else the one of a sample that has spent least. Exhausted keys go last, else a
 * flood of new keys would set limited callers free.
 */
export class Retention {
  readonly #table: Table
  readonly #view: View = { remaining: 0, resetAt: 0 }
  #hand = 0
  /** Slots that the hand has passed since it last freed one. When it has come round, it rests. */
  #barren = 0
  #restUntil = 0
  #random = 0x9e3779b9

  constructor(table: Table) {
    this.#table = table
  }

  /** Looks at the next `count` slots and frees those that are full again, at most `enough`; returns how many. */
  sweep(count: number, now: number, enough = count): number {
    const { slots } = this.#table.cursor
    let freed = 0
    for (let i = 0; i < count && freed < enough && slots.size > 0; i++) {
      this.#hand = this.#hand >= slots.top ? 1 : this.#hand + 1
      if (slots.keyAt(this.#hand) !== undefined && this.#hardship(this.#hand, now) === 0) {
        this.#table.release(this.#hand)
        this.#barren = 0
        freed++
      } else if (++this.#barren > slots.top) {
        this.#barren = 0
        this.#restUntil = now + REST
      }
    }
    return freed
  }

  /** Makes room: for nothing where a key nearby is full again, else by forgetting the key that it returns. */
  evict(now: number): string | undefined {
    const { slots } = this.#table.cursor
    if (now >= this.#restUntil && this.sweep(NEARBY, now, 1) > 0) return undefined
    let victim = 0
    let least = Infinity
    for (let tries = 0; tries < SAMPLE || (least >= EXHAUSTED && tries < LONG_SAMPLE); tries++) {
      const slot = this.#anySlot(slots.top)
      if (slots.keyAt(slot) === undefined) continue
      const hardship = this.#hardship(slot, now)
      if (victim !== 0 && hardship >= least) continue
      victim = slot
      least = hardship
      if (least < EASY) break
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
      const policy = slowest[i]!
      policy.algorithm.view(cursor.states[i]!, policy, now, this.#view)
      const wait = this.#view.resetAt - now
      if (wait <= 0) continue
      const spent = 1 - this.#view.remaining / policy.capacity
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
/** A key that has spent less than this is forgotten without looking for a better one. */
const EASY = 0.5
const NEARBY = 64
/** Microseconds for which a store without a key that is full again is not searched for one. */
const REST = 1_000_000
const SAMPLE = 5
const LONG_SAMPLE = 64
