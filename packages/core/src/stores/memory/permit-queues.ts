import type { Clock } from '../../values/clock.js'
import { ALIVE_US, CLAIM_US, GRACE_US, type PermitStep, type TicketState } from '../permits.js'

/** One step on the tickets of a semaphore. */
export interface PermitCall {
  readonly step: PermitStep
  /** Number of the semaphore at its holder. */
  readonly semaphore: number
  /** The name that semaphores share. */
  readonly name: string
  readonly key: string
  readonly tickets: readonly number[]
  readonly limit: number
  /** Microseconds. */
  readonly lease: number
}

/** A process, or a part of one, that has semaphores. */
export interface PermitHolder {
  /** Differs from those of all other holders. */
  readonly id: number
  /** A waiting ticket got a permit. */
  granted(semaphore: number, ticket: number): void
}

/**
 * The permits of a memory store, and of the server of a machine, by name and key. A key without tickets takes no memory.
 * lua/semaphore.lua is the twin for Redis.
 */
export class PermitQueues {
  readonly #now: Clock
  readonly #queues = new Map<string, PermitQueue>()
  #graceUntil = -Infinity

  /** `now` in microseconds: permits run out on this clock, and never if it stands still. */
  constructor(now: Clock) {
    this.#now = now
  }

  /** Begins the time of grace: there are holders of permits that are unknown here. */
  stateWasLost(): void {
    this.#graceUntil = this.#now() + GRACE_US
  }

  carryOut(holder: PermitHolder, call: PermitCall): readonly TicketState[] {
    const id = `${call.name}\n${call.key}` // names have no line breaks
    const queue = this.#queues.get(id) ?? new PermitQueue()
    this.#queues.set(id, queue)
    const now = this.#now()
    const states = queue.carryOut(holder, call, now, now < this.#graceUntil)
    this.#finish(id, queue)
    return states
  }

  /** Releases all tickets of a holder that is gone. */
  leave(holder: PermitHolder): void {
    const now = this.#now()
    for (const [id, queue] of this.#queues) {
      queue.leave(holder, now, now < this.#graceUntil)
      this.#finish(id, queue)
    }
  }

  /** Holders may poll at once when they are called, so they are called last. */
  #finish(id: string, queue: PermitQueue): void {
    if (queue.isEmpty) this.#queues.delete(id)
    for (const { semaphore, number } of queue.takeGranted()) {
      semaphore.holder.granted(semaphore.number, number)
    }
  }
}

/** The permits of one key, and the tickets that wait for one. */
class PermitQueue {
  readonly #held = new Map<string, Ticket>()
  /** Oldest first. */
  readonly #waiting = new Map<string, Ticket>()
  /** Those with waiting tickets. */
  readonly #semaphores = new Map<string, SemaphoreOfHolder>()
  /** Waiting tickets that got a permit and whose holders have not been called. */
  #granted: Ticket[] = []
  /** No permit runs out before this instant. */
  #nextEnd = Infinity

  get isEmpty(): boolean {
    return this.#held.size + this.#waiting.size === 0
  }

  carryOut(holder: PermitHolder, call: PermitCall, now: number, isGrace: boolean): readonly TicketState[] {
    const { step, limit, lease } = call
    this.#expire(now)
    const semaphore = this.#semaphoreOf(holder, call, now)
    const ticketOf = (number: number): Ticket => ({
      id: `${semaphore.id}:${number}`,
      number,
      semaphore,
      until: now + lease,
    })
    const tickets = call.tickets.map(ticketOf)
    for (const ticket of tickets) {
      if (step === 'release') this.#remove(ticket.id)
      // Before the queue is served: a holder whose permit was lost has precedence.
      else if (step === 'renew' && this.#held.size < limit) this.#hold(ticket)
    }
    const isTaking = step === 'take' || step === 'wait'
    if (!isGrace) this.#serve(isTaking ? limit : 0, now)
    for (const ticket of tickets) {
      const state = this.#stateOf(ticket)
      const isOpen = !isGrace && this.#waiting.size === 0 && this.#held.size < limit
      if (state === 'held' || (isTaking && state === 'unknown' && isOpen)) this.#hold(ticket)
      else if (step === 'wait' && state === 'unknown') this.#enqueue(ticket)
    }
    return tickets.map((ticket) => this.#stateOf(ticket))
  }

  leave(holder: PermitHolder, now: number, isGrace: boolean): void {
    for (const { id, semaphore } of [...this.#held.values(), ...this.#waiting.values()]) {
      if (semaphore.holder === holder) this.#remove(id)
    }
    if (!isGrace) this.#serve(0, now)
  }

  takeGranted(): readonly Ticket[] {
    const granted = this.#granted
    this.#granted = []
    return granted
  }

  /** A semaphore with waiting tickets is the same one in all steps. */
  #semaphoreOf(
    holder: PermitHolder,
    { step, semaphore: number, limit }: PermitCall,
    now: number,
  ): SemaphoreOfHolder {
    const id = `${holder.id}:${number}`
    const semaphore = this.#semaphores.get(id) ?? { id, holder, number, limit, aliveUntil: 0, waiting: 0 }
    if (step === 'wait' || step === 'poll') {
      semaphore.limit = limit
      semaphore.aliveUntil = now + ALIVE_US
    }
    return semaphore
  }

  /**
   * Grants permits to the oldest tickets, each under its own limit; `limit` is that of a ticket about to take one. Tickets of
   * a silent semaphore leave once a permit is free under the widest limit. Until then they delay no other, and a semaphore
   * that was only busy finds them where they were.
   */
  #serve(limit: number, now: number): void {
    let widest = limit
    for (const semaphore of this.#semaphores.values()) {
      if (semaphore.aliveUntil > now) widest = Math.max(widest, semaphore.limit)
    }
    for (const [id, ticket] of this.#waiting) {
      if (this.#held.size >= widest) return
      if (ticket.semaphore.aliveUntil <= now) {
        this.#remove(id)
        continue
      }
      if (this.#held.size >= ticket.semaphore.limit) return
      this.#hold({ ...ticket, until: now + CLAIM_US })
      this.#granted.push(ticket)
    }
  }

  #stateOf({ id }: Ticket): TicketState {
    return this.#held.has(id) ? 'held' : this.#waiting.has(id) ? 'waiting' : 'unknown'
  }

  #hold(ticket: Ticket): void {
    this.#remove(ticket.id)
    this.#held.set(ticket.id, ticket)
    this.#nextEnd = Math.min(this.#nextEnd, ticket.until)
  }

  #enqueue(ticket: Ticket): void {
    this.#waiting.set(ticket.id, ticket)
    this.#semaphores.set(ticket.semaphore.id, ticket.semaphore)
    ticket.semaphore.waiting++
  }

  #remove(id: string): void {
    const waiting = this.#waiting.get(id)
    this.#held.delete(id)
    this.#waiting.delete(id)
    if (waiting && --waiting.semaphore.waiting === 0) this.#semaphores.delete(waiting.semaphore.id)
  }

  /** Leases of one queue may differ, so all of them are looked at. */
  #expire(now: number): void {
    if (now < this.#nextEnd) return
    this.#nextEnd = Infinity
    for (const [id, { until }] of this.#held) {
      if (until <= now) this.#held.delete(id)
      else this.#nextEnd = Math.min(this.#nextEnd, until)
    }
  }
}

/** One semaphore of a holder. */
interface SemaphoreOfHolder {
  /** Differs from those of all other semaphores. */
  readonly id: string
  readonly holder: PermitHolder
  readonly number: number
  limit: number
  aliveUntil: number
  /** How many of its tickets wait. */
  waiting: number
}

interface Ticket {
  readonly id: string
  readonly number: number
  readonly semaphore: SemaphoreOfHolder
  /** The instant at which its permit is free again, once it holds one. */
  readonly until: number
}
