import type { Rule, Write } from './rule.js'

/** An answer of the store, without what is the store's own. */
export interface Expected {
  readonly now: number
  readonly at: number
  readonly reason: 'limit' | 'cost' | 'blocked' | 'held' | undefined
  readonly binding: number
  readonly remaining: number
  readonly resetAt: number
  readonly parts: readonly number[] | undefined
  /** Of each policy the units that count now, rounded up, or at the last booked instant if that is later. */
  readonly used: readonly number[]
  /** The place taken ahead of now. */
  readonly booking: Entry | undefined
}

/** A write to a key, under the list of policies of its call. */
export interface Entry extends Omit<Write, 'rule'> {
  readonly rules: readonly Rule[]
  /** When it was written; a place is booked before its instant. */
  readonly decidedAt: bigint
}

/** Units that were charged, at which instant, and when that was decided. */
export interface Charged {
  readonly at: bigint
  readonly cost: bigint
  readonly decidedAt: bigint
}
