import type { Answer, Booking, Reason } from '../store.js'

/** One class for every answer, because V8 gives object literals at different places different hidden classes. */
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
