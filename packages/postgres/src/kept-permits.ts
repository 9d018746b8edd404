import { ALIVE_US, CLAIM_US, GRACE_US, type PermitCall } from '@sluice/core/internal'
import type { TicketState } from '@sluice/core/store'

/*
 * The permits of one key, and the tickets that wait for one, as a list of numbers. lua/semaphore.lua is the twin for Redis. Nothing
 * is announced: waiters poll.
 */

/** A ticket of a semaphore that holds a permit until an instant, in microseconds. */
interface Held {
  readonly semaphore: number
  readonly ticket: number
  until: number
}

interface Waiting {
  readonly semaphore: number
  readonly ticket: number
}

/** A semaphore with waiting tickets, and the limit that it named last. */
interface PollingSemaphore {
  readonly semaphore: number
  limit: number
  aliveUntil: number
}

export class KeptPermits {
  #graceUntil = 0
  #held: Held[] = []
  /** The oldest first. */
  #line: Waiting[] = []
  #waiters: PollingSemaphore[] = []

  /**
   * Reads the queue of one key from the list of numbers that `numbers` made of it; an empty list is a key without permits. The
   * list begins with the end of the time of grace, in which a queue that may have been lost gives permits only to holders that
   * renew theirs, and with the counts of held permits and of waiting tickets. Then come these permits and tickets, and last the
   * semaphores that poll for waiting tickets. A list that is too short was damaged, and is taken as an empty one.
   */
  constructor(numbers: readonly number[]) {
    const [graceUntil = 0, heldCount = 0, waitingCount = 0, ...rest] = numbers
    const heldEnd = 3 * heldCount
    const lineEnd = heldEnd + 2 * waitingCount
    if (rest.length < lineEnd) return
    this.#graceUntil = graceUntil
    const held = triplesOf(rest.slice(0, heldEnd))
    this.#held = held.map(([semaphore, ticket, until]) => ({ semaphore, ticket, until }))
    for (let i = heldEnd; i < lineEnd; i += 2) {
      this.#line.push({ semaphore: rest[i]!, ticket: rest[i + 1]! })
    }
    const waiters = triplesOf(rest.slice(lineEnd))
    this.#waiters = waiters.map(([semaphore, limit, aliveUntil]) => ({ semaphore, limit, aliveUntil }))
  }

  /**
   * The queue of this key as a list of numbers, from which the constructor reads it again; [] if it holds nothing. First come
   * three: the end of the time of grace, in which only holders that renew their permits get any, and how many permits and waiting
   * tickets follow. Then come of each permit its semaphore (a random number, drawn for each semaphore of a process), its ticket
   * and its end, and of each waiting ticket its semaphore and number. Last come of each semaphore that polls for waiting tickets
   * its number, its limit, and the instant after which its tickets may lose their places unless it has polled again.
   */
  get numbers(): readonly number[] {
    const held = this.#held.flatMap(({ semaphore, ticket, until }) => [semaphore, ticket, until])
    const line = this.#line.flatMap(({ semaphore, ticket }) => [semaphore, ticket])
    const waiters = this.#waiters.flatMap(({ semaphore, limit, aliveUntil }) => [
      semaphore,
      limit,
      aliveUntil,
    ])
    if (held.length + line.length + waiters.length + this.#graceUntil === 0) return []
    return [this.#graceUntil, this.#held.length, this.#line.length, ...held, ...line, ...waiters]
  }

  /** The instant at which the last permit ends unless it is renewed; 0 if none is held. */
  get heldUntil(): number {
    return Math.max(0, ...this.#held.map(({ until }) => until))
  }

  /**
   * Takes one step of a semaphore for some of its tickets, at the instant `now` in microseconds, and returns how each stands: held
   * (it has a permit), waiting or unknown. `take` takes a permit now or not at all, `wait` enters the queue, `poll` asks how a ticket
   * stands, `renew` prolongs a permit or gets a lost one again, `release` ends it. Each step removes what has expired, and gives free
   * permits to the queue before a ticket of the call may take one. A key without state may have lost it: for a time of grace only
   * `renew` gets a permit.
   */
  carryOut(call: PermitCall, now: number): readonly TicketState[] {
    const { step, semaphore, tickets, limit, lease } = call
    const isTaking = step === 'take' || step === 'wait'
    this.#expire(now)
    const expectsState = step === 'poll' || step === 'renew'
    if (expectsState && this.numbers.length === 0) this.#graceUntil = now + GRACE_US
    const isGrace = this.#graceUntil > now
    const keepsPlaces = step === 'wait' || step === 'poll'
    if (keepsPlaces) this.#keepAlive(semaphore, limit, now)
    for (const ticket of tickets) {
      if (step === 'release') this.#remove(semaphore, ticket)
      // Before the queue is served: a holder whose permit was lost has precedence.
      else if (step === 'renew' && !this.#heldBy(semaphore, ticket) && this.#held.length < limit)
        this.#hold(semaphore, ticket, now + lease)
    }
    if (!isGrace) this.#grantToWaiting(isTaking ? limit : 0, now)
    return tickets.map((ticket) => {
      let held = this.#heldBy(semaphore, ticket)
      if (!held && this.#isWaiting(semaphore, ticket)) return 'waiting'
      const isFree = !isGrace && this.#line.length === 0 && this.#held.length < limit
      if (!held && isTaking && isFree) held = this.#hold(semaphore, ticket, 0)
      if (held) {
        held.until = now + lease
        return 'held'
      }
      if (step !== 'wait') return 'unknown'
      this.#line.push({ semaphore, ticket })
      return 'waiting'
    })
  }

  /**
   * Removes what has ended at `now`: permits, semaphores that have stopped polling, and the time of grace. In that time, which
   * begins when the state of a key seems lost, only holders that renew their permits get any, so that no others take them first.
   * A permit that ends more than an hour ahead (no lease is longer) was given before the clock was set back. It counts as lost,
   * and a time of grace begins, as its holder may live. Semaphores and times of grace that would last longer than ALIVE_US from
   * now are cut to that, or they would last until the clock has caught up.
   */
  #expire(now: number): void {
    const wasClockSetBack = this.#held.some(({ until }) => until > now + FAR_US)
    this.#held = this.#held.filter(({ until }) => until > now && until <= now + FAR_US)
    for (const waiter of this.#waiters) waiter.aliveUntil = Math.min(waiter.aliveUntil, now + ALIVE_US)
    this.#waiters = this.#waiters.filter(({ aliveUntil }) => aliveUntil > now)
    this.#graceUntil = this.#graceUntil > now ? Math.min(this.#graceUntil, now + ALIVE_US) : 0
    if (wasClockSetBack) this.#graceUntil = now + GRACE_US
  }

  /**
   * Notes that a semaphore has polled at `now`, so that its waiting tickets count for another second, and the limit that it
   * named, which holds for all of its tickets.
   */
  #keepAlive(semaphore: number, limit: number, now: number): void {
    let waiter = this.#waiters.find((each) => each.semaphore === semaphore)
    if (!waiter) this.#waiters.push((waiter = { semaphore, limit, aliveUntil: 0 }))
    waiter.limit = limit
    waiter.aliveUntil = now + ALIVE_US
  }

  /**
   * Grants permits to waiting tickets, the oldest first, each under the limit of its own semaphore. A ticket whose limit is
   * reached stops all behind it, as those with larger limits could otherwise pass it for ever. A ticket whose semaphore has
   * stopped polling is removed, so that it stops no other. Once `widest` permits are held, the largest limit of all, no ticket can
   * get one, and the walk ends. `widest` includes `limit`, that of a call that is about to take a permit (0 for none): it may take
   * one only when the queue is empty. A new permit lasts for CLAIM_US, the time in which its holder has to notice it.
   */
  #grantToWaiting(limit: number, now: number): void {
    const widest = Math.max(limit, ...this.#waiters.map((each) => each.limit))
    for (const { semaphore, ticket } of this.#line) {
      if (this.#held.length >= widest) return
      const waiter = this.#waiters.find((each) => each.semaphore === semaphore)
      if (!waiter) this.#remove(semaphore, ticket)
      else if (this.#held.length >= waiter.limit) return
      else this.#hold(semaphore, ticket, now + CLAIM_US)
    }
  }

  /** Returns the permit that a ticket holds; undefined if it holds none. */
  #heldBy(semaphore: number, ticket: number): Held | undefined {
    return this.#held.find((each) => each.semaphore === semaphore && each.ticket === ticket)
  }

  /** Whether a ticket is in the queue. */
  #isWaiting(semaphore: number, ticket: number): boolean {
    return this.#line.some((each) => each.semaphore === semaphore && each.ticket === ticket)
  }

  /** Gives a ticket a permit until the instant `until` in microseconds, takes it out of the queue, and returns the permit. */
  #hold(semaphore: number, ticket: number, until: number): Held {
    this.#remove(semaphore, ticket)
    const held = { semaphore, ticket, until }
    this.#held.push(held)
    return held
  }

  /**
   * Removes a ticket of a semaphore, with its permit or its place in the queue. Ticket numbers are unique within their semaphore
   * only.
   */
  #remove(semaphore: number, ticket: number): void {
    const isOther = (each: Waiting): boolean => each.semaphore !== semaphore || each.ticket !== ticket
    this.#held = this.#held.filter(isOther)
    this.#line = this.#line.filter(isOther)
  }
}

/**
 * Returns a list of numbers in groups of three, as the list that a row keeps has three numbers for each permit and for each
 * semaphore that polls. One or two numbers that are left over are dropped.
 */
function triplesOf(numbers: readonly number[]): (readonly [number, number, number])[] {
  return Array.from({ length: Math.floor(numbers.length / 3) }, (_, i) => {
    return [numbers[3 * i]!, numbers[3 * i + 1]!, numbers[3 * i + 2]!] as const
  })
}

/** An hour, the longest lease. */
const FAR_US = 3_600_000_000
