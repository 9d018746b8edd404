import type { PermitStep, TicketState } from '@sluice/core/store'

interface Ticket {
  readonly semaphore: number
  readonly number: number
}

/** The permits and waiting tickets of one key, written from the contract: naively, and without time. */
export class Line {
  readonly #limits = new Map<number, number>()
  #held: readonly Ticket[] = []
  #waiting: readonly Ticket[] = []

  get isEmpty(): boolean {
    return this.#held.length + this.#waiting.length === 0
  }

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

  #serve(): void {
    const [oldest] = this.#waiting
    if (!oldest || this.#held.length >= this.#limits.get(oldest.semaphore)!) return
    this.#forget(oldest)
    this.#held = [...this.#held, oldest]
    this.#serve()
  }

  #takeFirst(ticket: Ticket, limit: number): void {
    if (this.#stateOf(ticket) === 'held' || this.#held.length >= limit) return
    this.#forget(ticket)
    this.#held = [...this.#held, ticket]
  }

  #takeLast(ticket: Ticket, limit: number, step: 'take' | 'wait'): void {
    if (this.#stateOf(ticket) !== 'unknown') return
    if (this.#waiting.length === 0 && this.#held.length < limit) this.#held = [...this.#held, ticket]
    else if (step === 'wait') this.#waiting = [...this.#waiting, ticket]
  }

  #forget(ticket: Ticket): void {
    this.#held = this.#held.filter((other) => !isSame(other, ticket))
    this.#waiting = this.#waiting.filter((other) => !isSame(other, ticket))
  }

  #stateOf(ticket: Ticket): TicketState {
    if (this.#held.some((other) => isSame(other, ticket))) return 'held'
    return this.#waiting.some((other) => isSame(other, ticket)) ? 'waiting' : 'unknown'
  }
}

function isSame(one: Ticket, other: Ticket): boolean {
  return one.semaphore === other.semaphore && one.number === other.number
}
