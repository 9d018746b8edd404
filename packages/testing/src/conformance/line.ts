import { deepStrictEqual } from 'node:assert'
import { permitsBeside } from '@sluice/core/internal'
import type { Permits, PermitStep, Store, TicketState } from '@sluice/core/store'
import * as fc from 'fast-check'
import type { Session } from './session.js'

/** One step of one of three semaphores. `picks` choose from its newest tickets. */
interface DrawnStep {
  readonly semaphore: number
  readonly step: PermitStep
  readonly limit: number
  readonly picks: readonly number[]
}

export const permitSteps: fc.Arbitrary<readonly DrawnStep[]> = fc.array(
  fc.record({
    semaphore: fc.nat(2),
    step: fc.constantFrom<PermitStep>('take', 'wait', 'wait', 'poll', 'renew', 'release', 'release'),
    limit: fc.constantFrom(1, 2, 4),
    picks: fc.array(fc.nat(4), { minLength: 1, maxLength: 3 }),
  }),
  { maxLength: 60, size: 'max' },
)

/** The permits of a semaphore: the store's own, or those beside a store in this process. */
export function permitsOf(store: Store, name: string, leaseMs: number): Permits {
  return store.local ? permitsBeside(store, name) : store.permits!(name, leaseMs)
}

/**
 * Takes the same steps of tickets (calls that hold a permit, or wait for one) of three semaphores of one key in a store and in a
 * simple model, the line, and asserts after each that both return the same states: held, waiting or unknown. `take` and `wait`
 * bring a new ticket, the number after the semaphore's newest; other steps go to some of its newest, by `picks`. All steps are at
 * one instant, so no lease ends.
 */
export async function expectInLine({ store, freshKey }: Session, steps: readonly DrawnStep[]): Promise<void> {
  const key = freshKey()
  const semaphores = [0, 1, 2].map(() => permitsOf(store, key, 60_000))
  const line = new Line()
  const used = [0, 0, 0]
  for (const { semaphore, step, limit, picks } of steps) {
    const isNew = step === 'take' || step === 'wait'
    if (isNew) used[semaphore]!++
    // Where a key has no tickets a store may take a poll or a renewal for the sign that it has lost them.
    else if (used[semaphore] === 0 || line.isEmpty) continue
    const known = used[semaphore]!
    const tickets = isNew ? [known] : [...new Set(picks.map((pick) => Math.max(1, known - pick)))]
    const states = await semaphores[semaphore]!.ask(step, key, tickets, limit)
    deepStrictEqual(states, line.ask(semaphore, step, tickets, limit))
  }
}

interface Ticket {
  readonly semaphore: number
  readonly number: number
}

/** The permits and waiting tickets of one key, written from the contract: naively, and without time. */
class Line {
  readonly #limits = new Map<number, number>()
  #held: readonly Ticket[] = []
  #waiting: readonly Ticket[] = []

  /** Whether no ticket holds a permit or waits for one. */
  get isEmpty(): boolean {
    return this.#held.length + this.#waiting.length === 0
  }

  /**
   * Takes one step for tickets of a semaphore, by their numbers, and returns their states after it, in the same order. A ticket
   * gets a permit only while fewer than `limit` are held, by all semaphores together; `wait` and `poll` set that limit for the
   * semaphore's waiting tickets. A release comes before the queue is served, as it frees a permit for the queue. So does a
   * renewal, as its ticket had a permit before those that wait, even if the store has lost it. A new ticket comes after the
   * queue, so that it passes none that waits.
   */
  ask(
    semaphore: number,
    step: PermitStep,
    numbers: readonly number[],
    limit: number,
  ): readonly TicketState[] {
    const tickets = numbers.map((number) => ({ semaphore, number }))
    if (step === 'wait' || step === 'poll') this.#limits.set(semaphore, limit)
    if (step === 'release') tickets.forEach((ticket) => this.#forget(ticket))
    if (step === 'renew') tickets.forEach((ticket) => this.#takeFirst(ticket, limit))
    this.#serve()
    if (step === 'take' || step === 'wait') tickets.forEach((ticket) => this.#takeLast(ticket, limit, step))
    return tickets.map((ticket) => this.#stateOf(ticket))
  }

  /**
   * Grants permits to the waiting tickets, oldest first, until the oldest may not have one: as many are held, by any semaphore,
   * as its own semaphore's limit allows. Tickets behind it wait too, even under a higher limit, so that they cannot pass it for
   * ever.
   */
  #serve(): void {
    const [oldest] = this.#waiting
    if (!oldest || this.#held.length >= this.#limits.get(oldest.semaphore)!) return
    this.#forget(oldest)
    this.#held = [...this.#held, oldest]
    this.#serve()
  }

  /**
   * Grants a ticket a permit before all that wait, if fewer than `limit` are held, for a step `renew`: a holder that renews had
   * its permit before, and the store has lost it. Does nothing if the ticket still holds one.
   */
  #takeFirst(ticket: Ticket, limit: number): void {
    if (this.#stateOf(ticket) === 'held' || this.#held.length >= limit) return
    this.#forget(ticket)
    this.#held = [...this.#held, ticket]
  }

  /**
   * Grants a new ticket a permit if none waits and fewer than `limit` are held. Otherwise it joins the end of the queue on
   * `wait`, and is left unknown on `take`. A ticket that holds a permit or waits already is left as it is.
   */
  #takeLast(ticket: Ticket, limit: number, step: 'take' | 'wait'): void {
    if (this.#stateOf(ticket) !== 'unknown') return
    if (this.#waiting.length === 0 && this.#held.length < limit) this.#held = [...this.#held, ticket]
    else if (step === 'wait') this.#waiting = [...this.#waiting, ticket]
  }

  /** Removes a ticket, whether it holds a permit or waits. */
  #forget(ticket: Ticket): void {
    this.#held = this.#held.filter((other) => !isSame(other, ticket))
    this.#waiting = this.#waiting.filter((other) => !isSame(other, ticket))
  }

  /** Whether a ticket holds a permit, waits, or is unknown. */
  #stateOf(ticket: Ticket): TicketState {
    if (this.#held.some((other) => isSame(other, ticket))) return 'held'
    return this.#waiting.some((other) => isSame(other, ticket)) ? 'waiting' : 'unknown'
  }
}

/** Whether two tickets are the same: of the same semaphore, with the same number. */
function isSame(one: Ticket, other: Ticket): boolean {
  return one.semaphore === other.semaphore && one.number === other.number
}
