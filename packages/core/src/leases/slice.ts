import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer } from '../stores/store.js'

/** What is remembered of a key that has no slice. */
export interface Seen {
  readonly at: number
  /** What the store last told to be left. */
  known: number
}

/** A call that waits for units. */
export interface Waiting {
  readonly cost: number
  readonly resolve: (answer: Answer | Promise<Answer>) => void
  readonly reject: (error: unknown) => void
}

/** The part of one key's allowance that this process holds: about what is called for in half of the time it lasts. */
export class Slice {
  /** What the store last told to be left. */
  known: number
  readonly policies: readonly Policy[]
  readonly #ttl: number
  #askedAt: number
  /** Microseconds between calls, a mean in which each call has half of the weight of the second one after it. */
  #gap: number
  #left = 0
  #until = -Infinity
  #heard = 0
  #told: Answer | undefined
  #isDropped = false
  #isBooking = false
  #waiting: Waiting[] = []
  /** Units for which callers may still join the booking that is under way. */
  #room = 0

  /** For a key of which one call was seen: at `askedAt`, when the store told that `known` units are left. */
  constructor(policies: readonly Policy[], ttl: number, { at, known }: Seen) {
    this.policies = policies
    this.known = known
    this.#ttl = this.#gap = ttl
    this.#askedAt = at
  }

  /** Whether it was not asked for during a whole ttl, so that it holds nothing. */
  isCold(now: number): boolean {
    return now - this.#askedAt >= this.#ttl && !this.#isBooking
  }

  /** A call came. */
  note(now: number): void {
    this.#gap += (now - this.#askedAt - this.#gap) / 4
    this.#askedAt = now
  }

  /** The answer to a call that is served from it; undefined where it cannot be. */
  serve(cost: number, now: number): Answer | undefined {
    if (cost > this.#left || now >= this.#until) return undefined
    this.#left -= cost
    return this.#answer(now)
  }

  /** Waits for the booking that is under way, where it is likely to be enough. */
  join(cost: number): Promise<Answer> | undefined {
    if (!this.#isBooking || cost > this.#room) return undefined
    this.#room -= cost
    return this.wait(cost)
  }

  /** Whether a booking was begun: none is where one is under way, or nothing is to be had beside what is wanted. */
  begin(cost: number, size: number, most: number): boolean {
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

  /** Takes `spare` units that were booked for later, to be served before `until`. */
  fill(answer: Answer, spare: number, until: number, now: number): void {
    if (this.#isDropped || spare === 0) return
    this.#told = answer
    this.#left = spare
    this.#until = until
    this.#heard = now
  }

  /** From here on it serves nothing, whatever is still on its way. */
  drop(): void {
    this.#isDropped = true
    this.#left = 0
    this.known = 0
  }

  /**
   * Units to book for later beside `wanted`: for half of the calls that come during the ttl if they go on as they did, so
   * that few are left over. At most half of what is left then: the others of the fleet want some too.
   * A multiple of `cost`, as a rest that is smaller than a call is of no use.
   */
  #spare(wanted: number, cost: number, size: number, most: number): number {
    if (this.#isDropped) return 0
    const soon = Math.floor(this.#ttl / (2 * this.#gap)) * cost
    const spare = Math.min(soon, size, Math.floor((this.known - wanted) / 2), most - wanted)
    return spare < cost ? 0 : spare - (spare % cost)
  }

  /**
   * As the store told when the slice was booked, counting all of it as used, and never less than what is in it. What
   * other processes took since is not known. The time until it is full again counts from when the answer was heard.
   */
  #answer(heard: number): Answer {
    const { now: told, at: chargedAt, binding, remaining, resetAt, parts } = this.#told!
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
      chargedAt,
    }
  }
}
