import type { Answer, Booking, Reason } from '../store.js'

/** One class for every answer: V8 handles literals of the same names that were written at different places as different. */
export class MemoryAnswer implements Answer {
  constructor(
    readonly now: number,
    readonly at: number,
    readonly reason: Reason | undefined,
    readonly binding: number,
    readonly remaining: number,
    readonly resetAt: number,
    readonly parts: readonly number[] | undefined,
    readonly booking: Booking | undefined,
  ) {}
}
