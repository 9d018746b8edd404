import type { TicketState } from '@sluice/core/store'
import type { PermitCall } from './machine-server.js'

/**
 * The permits of all semaphores of a machine, kept by its server. What lua/semaphore.lua does in Redis is done here in the
 * same way: permits run out with their lease, waiting tickets whose process does not poll leave the queue, and a permit that
 * is granted to a waiting ticket is kept for it for two seconds. In addition, a process that ends gives its permits back.
 */
export class PermitQueues {
  readonly #queues = new Map<string, LeasedQueue>()
  /** Until this instant only holders of permits from a former life of the server get one. */
  #barredUntil = 0

  /** A process that knew a former server has come, so holders may be about to renew permits that this server never granted. */
  stateWasLost(now: number): void {
    this.#barredUntil = Math.max(this.#barredUntil, now + GRACE)
  }

  carryOut(holder: PermitHolder, call: PermitCall, now: number): readonly TicketState[] {
    const id = `${call.name}\n${call.key}` // names have no line breaks
    const queue = this.#queues.get(id) ?? newQueue()
    this.#queues.set(id, queue)
    expire(queue, now)
    const semaphore = semaphoreOf(holder, call)
    if (call.operation === 'poll' || call.waits) queue.alive.set(semaphore, now + ALIVE)
    const ids = call.tickets.map((ticket) => `${semaphore}:${ticket}`)
    for (const [i, ticket] of ids.entries())
      this.#apply(queue, ticket, { holder, call, number: call.tickets[i]! }, now)
    this.#serve(queue, call.limit, now)
    const states = ids.map((ticket) => stateOf(queue, ticket))
    this.#forgetEmpty(id, queue)
    return states
  }

  /** Takes back all permits and tickets of a process. */
  leave(holder: PermitHolder, now: number): void {
    for (const [id, queue] of this.#queues) {
      for (const tickets of [queue.held, queue.granted, queue.waiting]) {
        for (const [ticket, { owner }] of tickets) if (owner.holder === holder) tickets.delete(ticket)
      }
      for (const semaphore of queue.alive.keys()) {
        if (semaphore.startsWith(`${holder.id}:`)) queue.alive.delete(semaphore)
      }
      this.#serve(queue, queue.limit, now)
      this.#forgetEmpty(id, queue)
    }
  }

  #apply(queue: LeasedQueue, ticket: string, owner: Owner, now: number): void {
    const { operation, limit, lease, waits } = owner.call
    queue.limit = limit
    const isHeld = queue.held.has(ticket) || queue.granted.has(ticket)
    if (operation === 'leave') return removeFrom(queue, ticket)
    if (isHeld) return hold(queue, ticket, { owner, until: now + lease })
    if (operation === 'renew') {
      // Before the queue is served: a holder whose permit was lost has precedence.
      if (isFree(queue, limit)) hold(queue, ticket, { owner, until: now + lease })
    } else if (operation === 'take' && !queue.waiting.has(ticket)) {
      this.#serve(queue, limit, now)
      const isOpen = isFree(queue, limit) && queue.waiting.size === 0 && now >= this.#barredUntil
      if (isOpen) hold(queue, ticket, { owner, until: now + lease })
      else if (waits) queue.waiting.set(ticket, { owner })
    }
  }

  /** Grants free permits to the oldest tickets. */
  #serve(queue: LeasedQueue, limit: number, now: number): void {
    if (now < this.#barredUntil) return
    for (const [ticket, { owner }] of queue.waiting) {
      if (!isFree(queue, limit)) return
      queue.waiting.delete(ticket)
      if ((queue.alive.get(semaphoreOf(owner.holder, owner.call)) ?? 0) < now) continue
      const end = now + Math.min(CLAIM, owner.call.lease)
      queue.granted.set(ticket, { owner, until: end })
      queue.nextEnd = Math.min(queue.nextEnd, end)
      owner.holder.granted(owner.call.semaphore, owner.number)
    }
  }

  #forgetEmpty(id: string, { held, granted, waiting }: LeasedQueue): void {
    if (held.size + granted.size + waiting.size === 0) this.#queues.delete(id)
  }
}

/** One process. */
export interface PermitHolder {
  readonly id: number
  granted(semaphore: number, ticket: number): void
}

interface LeasedQueue {
  /** The limit of the latest call. */
  limit: number
  /** No permit runs out before this instant. */
  nextEnd: number
  readonly held: Map<string, LeasedTicket>
  /** Granted, and not yet noticed by the process. */
  readonly granted: Map<string, LeasedTicket>
  /** Oldest first. */
  readonly waiting: Map<string, QueuedTicket>
  /** Until when each semaphore of a process counts as alive: only its oldest tickets are polled. */
  readonly alive: Map<string, number>
}

interface QueuedTicket {
  readonly owner: Owner
}

interface LeasedTicket extends QueuedTicket {
  readonly until: number
}

interface Owner {
  readonly holder: PermitHolder
  readonly call: PermitCall
  readonly number: number
}

function newQueue(): LeasedQueue {
  return {
    limit: 1,
    nextEnd: Infinity,
    held: new Map(),
    granted: new Map(),
    waiting: new Map(),
    alive: new Map(),
  }
}

/** One semaphore of one process. */
function semaphoreOf({ id }: PermitHolder, { semaphore }: PermitCall): string {
  return `${id}:${semaphore}`
}

function isFree({ held, granted }: LeasedQueue, limit: number): boolean {
  return held.size + granted.size < limit
}

function hold(queue: LeasedQueue, ticket: string, entry: LeasedTicket): void {
  removeFrom(queue, ticket)
  queue.held.set(ticket, entry)
  queue.nextEnd = Math.min(queue.nextEnd, entry.until)
}

function removeFrom({ held, granted, waiting }: LeasedQueue, ticket: string): void {
  held.delete(ticket)
  granted.delete(ticket)
  waiting.delete(ticket)
}

/** Removes the permits whose time is over. Leases of one queue may differ, so all of them are looked at. */
function expire(queue: LeasedQueue, now: number): void {
  if (now <= queue.nextEnd) return
  queue.nextEnd = Infinity
  for (const tickets of [queue.held, queue.granted]) {
    for (const [ticket, { until }] of tickets) {
      if (until < now) tickets.delete(ticket)
      else queue.nextEnd = Math.min(queue.nextEnd, until)
    }
  }
}

function stateOf({ held, granted, waiting }: LeasedQueue, ticket: string): TicketState {
  return held.has(ticket) || granted.has(ticket) ? 'held' : waiting.has(ticket) ? 'waiting' : 'unknown'
}

/** Microseconds, as in Redis. */
const ALIVE = 1_000_000
const CLAIM = 2_000_000
const GRACE = 700_000
