import type { Clock } from '../../values/clock.js'
import { sharedInProcess } from '../../values/contract.js'
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
 * Returns the permits of a semaphore whose store is in this process, which all semaphores of that `name` with this store share.
 * They are kept beside the store, in a map by store, and not in it, so that a bundle without semaphores does not contain them. The
 * function passed to `listen` is called with each waiting ticket (a call, by number) that gets a permit.
 */
export function permitsBeside(store: object, name: string): Permits {
  const queues = QUEUES.get(store) ?? new PermitQueues(() => 0) // time stands still: they need no leases
  QUEUES.set(store, queues)
  let listener: ((ticket: number) => void) | undefined
  const holder: PermitHolder = { tickets: new Map(), granted: (_, ticket) => listener?.(ticket) }
  return {
    /**
     * Takes one step, such as 'take' or 'release', for some tickets (calls of the semaphore, by number) and returns how each
     * stands then. In this process permits need no renewal, so their lease is endless.
     */
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

const QUEUES = sharedInProcess('permits', () => new WeakMap<object, PermitQueues>())

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

  /**
   * Carries out a step, such as 'take' or 'release', on the queue of one semaphore's name and key, and makes the queue if there is
   * none. Returns how the call's tickets stand then; `holder` is the process that owns them. Last, calls the holders whose waiting
   * tickets got permits by the step. Until `#graceUntil`, after a loss of state, only holders that renew get permits.
   */
  carryOut(holder: PermitHolder, call: PermitCall): readonly TicketState[] {
    const id = `${call.name}\n${call.key}` // names have no line breaks
    let queue = this.#queues.get(id)
    if (!queue) this.#queues.set(id, (queue = new PermitQueue(id)))
    const now = this.now()
    const states = queue.carryOut(holder, call, now, now < this.#graceUntil)
    this.#finish(queue)
    return states
  }

  /**
   * Releases all tickets of a holder (a process) that is gone, and grants their permits to the oldest waiting tickets. `serve` gets
   * the limit 0, as no new ticket is about to take one. Within the time of grace after a loss of state nothing is granted, as other
   * holders may still renew permits that are unknown here; the first step after it grants them.
   */
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
   * Ends a change of a queue: removes the queue if no ticket holds a permit or waits, and calls the holders of the waiting
   * tickets that got permits. They are called last, as they may take the next step at once.
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
   * Takes one step for some tickets of a holder (a process), and returns how each stands: 'held' with a permit, 'waiting' in the
   * line, or 'unknown'. Permits that have expired are freed first; then tickets are released or renewed; then waiting tickets are
   * served, and only then may a ticket of this call ('take', 'wait') get a permit (`isOpen`). In the time of grace after a loss
   * of state (`isGrace`) only `renew` grants permits. A ticket that holds one keeps it until now plus the call's lease.
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

  /** Removes a ticket from the queue and from its holder, with its permit or its place in the line of waiting tickets. */
  remove(ticket: Ticket): void {
    this.#held.delete(ticket)
    this.#leaveLine(ticket)
    ticketsOf(ticket.holder, ticket.semaphore).delete(ticket.number)
  }

  /**
   * Grants permits to waiting tickets, the oldest first, while fewer are held than the limit of the ticket's own semaphore. The
   * first ticket that has to wait delays all behind it. A ticket whose semaphore has not polled in time (`aliveUntil` has passed) is
   * removed when its turn comes, as it would delay the others in vain. `limit` is that of a new ticket, which may take a permit if
   * the line is empty after this; 0 without one. Stops when as many permits are held as the widest limit allows, that of the new
   * ticket or of a semaphore that is alive: no ticket could get one then. Granted tickets have CLAIM_US to notice their permit, and
   * are listed in `#granted` for their holders.
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
   * Returns the tickets (calls, by number) that waited and got permits since this was called last, and forgets them; undefined if
   * there are none. Their holders, which are processes, have to be told.
   */
  takeGranted(): readonly Ticket[] | undefined {
    const granted = this.#granted
    this.#granted = undefined
    return granted
  }

  /** The ticket of this number, of one semaphore's `tickets`; undefined if there is none or it is in another key's queue. */
  #find(tickets: Tickets, number: number): Ticket | undefined {
    const ticket = tickets.get(number)
    return ticket?.queue === this ? ticket : undefined
  }

  /** Makes the ticket `number` of a semaphore of `holder`, and lists it there. It neither holds a permit nor waits yet. */
  #add(holder: PermitHolder, semaphore: number, number: number): Ticket {
    const ticket = { holder, semaphore, number, queue: this, until: 0, waitsWith: undefined }
    ticketsOf(holder, semaphore).set(number, ticket)
    return ticket
  }

  /**
   * Gives a ticket a permit until the instant `until`, or its permit a new end. A waiting ticket leaves the line. `#nextEnd`
   * stays at or before the earliest end of all permits.
   */
  #hold(ticket: Ticket, until: number): void {
    this.#leaveLine(ticket)
    this.#held.add(ticket)
    ticket.until = until
    this.#nextEnd = Math.min(this.#nextEnd, until)
  }

  /**
   * Puts a ticket at the end of the line of waiting tickets. `tickets` are all of its semaphore, by which the line finds the
   * semaphore: its limit, until when it counts as alive without a poll, and how many of its tickets wait.
   */
  #enqueue(ticket: Ticket, tickets: Tickets, limit: number, now: number): void {
    this.#line ??= { tickets: new Set(), semaphores: new Map() }
    let semaphore = this.#line.semaphores.get(tickets)
    if (!semaphore) this.#line.semaphores.set(tickets, (semaphore = new WaitingSemaphore(limit, now)))
    semaphore.waiting++
    ticket.waitsWith = semaphore
    this.#line.tickets.add(ticket)
  }

  /**
   * Removes a ticket from the line if it waits (`waitsWith` is its semaphore there). The semaphore leaves the line with the last
   * of its waiting tickets, and an empty line is given up.
   */
  #leaveLine(ticket: Ticket): void {
    const { waitsWith } = ticket
    if (!waitsWith) return
    ticket.waitsWith = undefined
    this.#line!.tickets.delete(ticket)
    if (--waitsWith.waiting === 0) this.#line!.semaphores.delete(ticketsOf(ticket.holder, ticket.semaphore))
    if (this.#line!.tickets.size === 0) this.#line = undefined
  }

  /**
   * Removes the tickets whose permits have ended, as they were not renewed in time. Leases of one queue may differ, so all
   * permits are checked, but only from `#nextEnd` on, before which none ends; it becomes the earliest end of the others.
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

  /**
   * Notes that the semaphore has polled at `now`, and its limit. Its waiting tickets keep their places for ALIVE_US from then.
   */
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

/** The tickets of one semaphore of a holder (a process), by number; an empty map is made at first. */
function ticketsOf({ tickets }: PermitHolder, semaphore: number): Tickets {
  let own = tickets.get(semaphore)
  if (!own) tickets.set(semaphore, (own = new Map()))
  return own
}
