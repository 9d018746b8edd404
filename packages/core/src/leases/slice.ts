import type { Policy } from '../policy.js'
import type { Answer } from '../stores/store.js'

/** A call that waits for units. */
export interface Waiting {
  readonly cost: number
  resolve(answer: Answer | Promise<Answer>): void
  reject(error: unknown): void
}

/**
 * The part of one key's allowance that this process holds. It grows while it is used up before it ends, and shrinks to
 * what was used when it was not.
 */
export class Slice {
  /** What the store last told to be left. */
  known: number
  /** When it was last asked for. */
  askedAt = 0
  readonly policies: readonly Policy[]
  #left = 0
  #until = -Infinity
  #heard = 0
  #used = 0
  #pace = FIRST_PACE
  #told: Answer | undefined
  #isJudged = true
  #isDropped = false
  #isBooking = false
  #waiting: Waiting[] = []
  /** Units for which callers may still join the booking that is under way. */
  #room = 0

  constructor(policies: readonly Policy[], known: number) {
    this.policies = policies
    this.known = known
  }

  get isBooking(): boolean {
    return this.#isBooking
  }

  /** The answer to a call that is served from it; undefined where it cannot be. */
  serve(cost: number, now: number): Answer | undefined {
    if (cost > this.#left || now >= this.#until) return undefined
    this.#left -= cost
    this.#used += cost
    return this.#answer(now)
  }

  /** Waits for the booking that is under way, where it is likely to be enough. */
  join(cost: number): Promise<Answer> | undefined {
    if (!this.#isBooking || cost > this.#room) return undefined
    this.#room -= cost
    return this.wait(cost)
  }

  /** Whether a booking was begun: none is where one is under way, or nothing is to be had beside what is wanted. */
  begin(cost: number, size: number, most: number, now: number): boolean {
    if (!this.#isJudged) this.#judge(now)
    if (this.#isBooking || this.#spare(cost, cost, size, most) === 0) return false
    this.#isBooking = true
    this.#room = Math.min(most, this.known) - cost
    return true
  }

  wait(cost: number): Promise<Answer> {
    return new Promise((resolve, reject) => this.#waiting.push({ cost, resolve, reject }))
  }

  /** Moves those who wait to `callers`: what to book for them, and for later. From here on others wait for the latter. */
  send(callers: Waiting[], size: number, most: number): { wanted: number; spare: number } {
    callers.push(...this.#waiting.splice(0))
    const wanted = callers.reduce((sum, { cost }) => sum + cost, 0)
    const spare = this.#spare(wanted, callers[0]!.cost, size, most)
    this.#room = spare
    return { wanted, spare }
  }

  /** Ends a booking; returns who joined after it was sent. */
  end(): Waiting[] {
    this.#isBooking = false
    return this.#waiting.splice(0)
  }

  /** Takes `spare` units that were booked beside `wanted`, to be served before `until`. */
  fill(answer: Answer, wanted: number, spare: number, until: number, now: number): void {
    if (this.#isDropped || spare === 0) return
    this.#told = answer
    this.#isJudged = false
    this.#left = spare
    this.#until = until
    this.#heard = now
    this.#used = wanted
  }

  /** From here on it serves nothing, whatever is still on its way. */
  drop(): void {
    this.#isDropped = true
    this.#left = 0
    this.known = 0
  }

  /** Whether more is to be booked than the last time, or less. */
  #judge(now: number): void {
    const wasUsedUp = this.#left === 0 || now < this.#until
    this.#pace = wasUsedUp ? 2 * Math.max(this.#pace, this.#used) : Math.max(1, this.#used)
    this.#isJudged = true
  }

  /**
   * Units to book for later beside `wanted`. At most half of what is left then: the others of the fleet want some too.
   * A multiple of `cost`, as a rest that is smaller than a call is of no use.
   */
  #spare(wanted: number, cost: number, size: number, most: number): number {
    if (this.#isDropped) return 0
    const spare = Math.min(this.#pace, size, Math.floor((this.known - wanted) / 2), most - wanted)
    return spare < cost ? 0 : spare - (spare % cost)
  }

  /**
   * As the store told when the slice was booked, counting all of it as used, and never less than what is in it. What
   * other processes took since is not known. The time until it is full again counts from when the answer was heard.
   */
  #answer(heard: number): Answer {
    const { now: told, binding, remaining, resetAt, parts } = this.#told!
    const now = told + Math.max(0, heard - this.#heard)
    const left = this.#left
    return {
      now,
      at: now,
      reason: undefined,
      binding,
      remaining: Math.max(remaining, left),
      resetAt,
      parts: parts?.map((part, i) => (i % 3 === 1 ? Math.max(part, left) : part)),
      booking: undefined,
    }
  }
}

/** Units that the first slice of a key holds at most. */
const FIRST_PACE = 8
