import type { Clock } from '../../values/clock.js'
import { inCommon } from '../../values/contract.js'
import { ALIVE_US, CLAIM_US, GRACE_US, type Permits, type PermitStep, type TicketState } from '../permits.js'

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
  /** Its tickets, by the number of their semaphore and their own. `PermitQueues` keeps them. */
  readonly tickets: HolderTickets
  /** A waiting ticket got a permit. */
  granted(semaphore: number, ticket: number): void
}

export type HolderTickets = Map<number, Tickets>

/**
 * The permits of a semaphore beside a store in this process, shared by all semaphores of that name there. The store need not know
 * of them: a bundle without semaphores does not contain them.
 */
export function permitsBeside(store: object, name: string): Permits {
  const queues = QUEUES.get(store) ?? new PermitQueues(() => 0) // time stands still: they need no leases
  QUEUES.set(store, queues)
  let listener: ((ticket: number) => void) | undefined
  const holder: PermitHolder = { tickets: new Map(), granted: (_, ticket) => listener?.(ticket) }
  return {
    /** Takes one step for some tickets of the semaphore. In this process permits need no renewal. */
    ask(step, key, tickets, limit) {
      return queues.carryOut(holder, { step, semaphore: 0, name, key, tickets, limit, lease: Infinity })
    },
    listen(granted) {
      listener = granted
    },
    close() {
      listener = undefined
    },
  }
}

const QUEUES = inCommon('permits', () => new WeakMap<object, PermitQueues>())

/**
 * The permits of a memory store, and of the server of a machine, by name and key. A key without tickets takes no memory.
 * lua/semaphore.lua is the twin for Redis.
 */
export class PermitQueues {
  readonly #queues = new Map<string, PermitQueue>()
  #graceUntil = -Infinity

  /** `now` in microseconds: permits run out on this clock, and never if it stands still. */
  constructor(private readonly now: Clock) {}

  /** Begins the time of grace: there are holders of permits that are unknown here. */
  stateWasLost(): void {
    this.#graceUntil = this.now() + GRACE_US
  }

  /** Carries out a step on the queue of one semaphore and key, and calls the holders whose tickets got permits by it. */
  carryOut(holder: PermitHolder, call: PermitCall): readonly TicketState[] {
    const id = `${call.name}\n${call.key}` // names have no line breaks
    let queue = this.#queues.get(id)
    if (!queue) this.#queues.set(id, (queue = new PermitQueue(id)))
    const now = this.now()
    const states = queue.carryOut(holder, call, now, now < this.#graceUntil)
    this.#finish(queue)
    return states
  }

  /** Releases all tickets of a holder that is gone, and passes their permits on to those that wait. */
  leave(holder: PermitHolder): void {
    const now = this.now()
    const left = new Set<PermitQueue>()
    for (const tickets of holder.tickets.values()) {
      for (const ticket of tickets.values()) {
        left.add(ticket.queue)
        ticket.queue.remove(ticket)
      }
    }
    for (const queue of left) {
      if (now >= this.#graceUntil) queue.serve(0, now)
      this.#finish(queue)
    }
  }

  /**
   * Ends a change of a queue: removes it if it is empty, and calls the holders of new permits. They are called last, as
   * they may poll at once.
   */
  #finish(queue: PermitQueue): void {
    if (queue.isEmpty) this.#queues.delete(queue.id)
    const granted = queue.takeGranted()
    if (granted) for (const { holder, semaphore, number } of granted) holder.granted(semaphore, number)
  }
}

/** The permits of one key, and the tickets that wait for one. */
class PermitQueue {
  readonly #held = new Set<Ticket>()
  /** Undefined while no ticket waits, because making it costs more than to take a permit. */
  #line: Line | undefined
  /** Waiting tickets that got a permit and whose holders have not been called. */
  #granted: Ticket[] | undefined
  /** No permit runs out before this instant. */
  #nextEnd = Infinity

  constructor(readonly id: string) {}

  get isEmpty(): boolean {
    return this.#held.size === 0 && this.#line === undefined
  }

  /**
   * Takes one step for some tickets of a holder, and returns how they stand. Permits that have expired are freed first,
   * those that wait are served next, and only then may a ticket of this call take a permit. In the time of grace after
   * a loss of state only `renew` grants any.
   */
  carryOut(holder: PermitHolder, call: PermitCall, now: number, isGrace: boolean): readonly TicketState[] {
    const { step, limit } = call
    const tickets = ticketsOf(holder, call.semaphore)
    const until = now + call.lease
    this.#expire(now)
    if (step === 'wait' || step === 'poll') this.#line?.semaphores.get(tickets)?.keepAlive(limit, now)
    for (const number of call.tickets) {
      const ticket = this.#find(tickets, number)
      if (step === 'release' && ticket) this.remove(ticket)
      // Before those that wait are served, because a holder whose permit was lost has precedence.
      else if (step === 'renew' && this.#held.size < limit)
        this.#hold(ticket ?? this.#add(holder, call.semaphore, number), until)
    }
    const isTaking = step === 'take' || step === 'wait'
    if (!isGrace) this.serve(isTaking ? limit : 0, now)
    return call.tickets.map((number) => {
      let ticket = this.#find(tickets, number)
      if (!ticket && isTaking) {
        const isOpen = !isGrace && this.#line === undefined && this.#held.size < limit
        if (!isOpen && step === 'take') return 'unknown'
        ticket = this.#add(holder, call.semaphore, number)
        if (!isOpen) this.#enqueue(ticket, tickets, limit, now)
      }
      if (!ticket) return 'unknown'
      if (ticket.waitsWith) return 'waiting'
      this.#hold(ticket, until)
      return 'held'
    })
  }

  /** Removes a ticket, with its permit or its place in the line. */
  remove(ticket: Ticket): void {
    this.#held.delete(ticket)
    this.#leaveLine(ticket)
    ticketsOf(ticket.holder, ticket.semaphore).delete(ticket.number)
  }

  /**
   * Grants permits to the oldest waiting tickets, each under its own semaphore's limit; `limit` is that of a ticket
   * about to take one. Tickets of a semaphore that has not polled for a while are removed once a permit is free under
   * the widest limit. Until then they delay no other, and a semaphore that was only busy finds them where they were.
   */
  serve(limit: number, now: number): void {
    if (!this.#line) return
    let widest = limit
    for (const semaphore of this.#line.semaphores.values()) {
      if (semaphore.aliveUntil > now) widest = Math.max(widest, semaphore.limit)
    }
    for (const ticket of this.#line.tickets) {
      if (this.#held.size >= widest) return
      if (ticket.waitsWith!.aliveUntil <= now) {
        this.remove(ticket)
        continue
      }
      if (this.#held.size >= ticket.waitsWith!.limit) return
      this.#hold(ticket, now + CLAIM_US)
      ;(this.#granted ??= []).push(ticket)
    }
  }

  /**
   * The waiting tickets that got permits since the last call, whose holders have to be called; undefined if there are
   * none.
   */
  takeGranted(): readonly Ticket[] | undefined {
    const granted = this.#granted
    this.#granted = undefined
    return granted
  }

  /** The ticket of this number in this queue; undefined if there is none. */
  #find(tickets: Tickets, number: number): Ticket | undefined {
    const ticket = tickets.get(number)
    return ticket?.queue === this ? ticket : undefined
  }

  /** Makes a ticket, which neither holds a permit nor waits yet. */
  #add(holder: PermitHolder, semaphore: number, number: number): Ticket {
    const ticket = { holder, semaphore, number, queue: this, until: 0, waitsWith: undefined }
    ticketsOf(holder, semaphore).set(number, ticket)
    return ticket
  }

  /** Gives a ticket a permit until an instant, or its permit a new end. */
  #hold(ticket: Ticket, until: number): void {
    this.#leaveLine(ticket)
    this.#held.add(ticket)
    ticket.until = until
    this.#nextEnd = Math.min(this.#nextEnd, until)
  }

  /** Has a ticket wait at the end of the line. */
  #enqueue(ticket: Ticket, tickets: Tickets, limit: number, now: number): void {
    this.#line ??= { tickets: new Set(), semaphores: new Map() }
    let semaphore = this.#line.semaphores.get(tickets)
    if (!semaphore) this.#line.semaphores.set(tickets, (semaphore = new WaitingSemaphore(limit, now)))
    semaphore.waiting++
    ticket.waitsWith = semaphore
    this.#line.tickets.add(ticket)
  }

  /** Takes a ticket out of the line if it waits. The line goes with its last ticket. */
  #leaveLine(ticket: Ticket): void {
    const { waitsWith } = ticket
    if (!waitsWith) return
    ticket.waitsWith = undefined
    this.#line!.tickets.delete(ticket)
    if (--waitsWith.waiting === 0) this.#line!.semaphores.delete(ticketsOf(ticket.holder, ticket.semaphore))
    if (this.#line!.tickets.size === 0) this.#line = undefined
  }

  /**
   * Removes the tickets whose permits have not been renewed in time. Leases of one queue may differ, so all are looked
   * at, but only when the earliest may have ended.
   */
  #expire(now: number): void {
    if (now < this.#nextEnd) return
    this.#nextEnd = Infinity
    for (const ticket of this.#held) {
      if (ticket.until <= now) this.remove(ticket)
      else this.#nextEnd = Math.min(this.#nextEnd, ticket.until)
    }
  }
}

/** The tickets of a key that wait. */
interface Line {
  /** Oldest first. */
  readonly tickets: Set<Ticket>
  readonly semaphores: Map<Tickets, WaitingSemaphore>
}

/** A semaphore with waiting tickets of a key: the same one in all steps, until none of them waits. */
class WaitingSemaphore {
  limit = 0
  aliveUntil = 0
  /** Its tickets that wait. */
  waiting = 0

  constructor(limit: number, now: number) {
    this.keepAlive(limit, now)
  }

  /** Notes that the semaphore has polled, and under which limit. */
  keepAlive(limit: number, now: number): void {
    this.limit = limit
    this.aliveUntil = now + ALIVE_US
  }
}

/** The tickets of one semaphore, by number. */
type Tickets = Map<number, Ticket>

interface Ticket {
  readonly holder: PermitHolder
  /** Number of its semaphore at the holder. */
  readonly semaphore: number
  readonly number: number
  readonly queue: PermitQueue
  /** The instant at which its permit is free again, once it holds one. */
  until: number
  /** Undefined once it holds a permit. */
  waitsWith: WaitingSemaphore | undefined
}

/** The tickets of one semaphore of a holder. */
function ticketsOf({ tickets }: PermitHolder, semaphore: number): Tickets {
  let own = tickets.get(semaphore)
  if (!own) tickets.set(semaphore, (own = new Map()))
  return own
}
