import { randomBytes } from 'node:crypto'
import type { Subscribe } from '../stores/redis/clients/subscription.js'
import type { Places, PlacesOptions } from './places.js'
import {
  INSIDE,
  LEAVE,
  LOOK,
  RENEW,
  SemaphoreScript,
  type SemaphoreScriptOptions,
  TAKE,
  UNKNOWN,
} from './redis-script.js'

export interface RedisPlacesOptions extends PlacesOptions, SemaphoreScriptOptions {
  readonly subscribe: Subscribe | undefined
  readonly closed: () => void
}

/**
 * The places of one semaphore of this process, in Redis: lua/semaphore.lua is the other half. A ticket in line is told
 * of its place on a channel of this process; whoever was not told looks every 100 ms, which also keeps the tickets of
 * this process alive and gets them in line again where Redis has lost its data. Places are renewed twice a
 * second, or three times a lease. What could not be given back is given back later, unless its lease ends before.
 */
export class RedisPlaces implements Places {
  readonly #options: RedisPlacesOptions
  readonly #process = randomBytes(9).toString('base64url')
  readonly #script: SemaphoreScript
  /** By key. */
  readonly #rooms = new Map<string, Room>()
  readonly #tickets = new Map<number, Ticket>()
  #unsubscribe: (() => void) | undefined
  #looking: ReturnType<typeof setTimeout> | undefined
  #renewing: ReturnType<typeof setTimeout> | undefined
  #closed = false
  failure: unknown

  constructor(options: RedisPlacesOptions) {
    this.#options = options
    this.#script = new SemaphoreScript(options, this.#process)
  }

  async take(key: string, ticket: number, limit: number, wait: boolean): Promise<boolean> {
    const room = this.#roomOf(key, limit)
    room.guests++
    if (wait) room.line.add(ticket)
    this.#tickets.set(ticket, { room, asked: false })
    try {
      const state = await this.#ask(TAKE, room, [ticket], wait)
      this.failure = undefined
      if (state === INSIDE) return this.#enter(room, ticket)
      if (!wait) this.#forget(room, ticket)
    } catch (error) {
      if (!wait) throw error
      this.failure = error
    }
    if (wait) this.#listen()
    return false
  }

  async leave(_key: string, ticket: number): Promise<void> {
    const known = this.#tickets.get(ticket)
    if (!known) return
    this.#forget(known.room, ticket)
    if (known.asked) await this.#giveBack(known.room, ticket)
  }

  resize(limit: number): void {
    for (const room of this.#rooms.values()) {
      room.limit = limit
      if (room.line.size > 0) void this.#look(room, [...room.line].slice(0, MOST_AT_ONCE))
    }
  }

  close(): void {
    this.#closed = true
    this.#options.calls.close()
    clearTimeout(this.#looking)
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#options.closed()
  }

  #roomOf(key: string, limit: number): Room {
    let room = this.#rooms.get(key)
    if (!room) {
      room = { key, limit, guests: 0, line: new Set(), inside: new Set(), leaving: new Map() }
      this.#rooms.set(key, room)
    }
    return room
  }

  #forget(room: Room, ticket: number): void {
    if (this.#tickets.delete(ticket)) room.guests--
    room.line.delete(ticket)
    room.inside.delete(ticket)
    this.#tidy(room)
  }

  #tidy(room: Room): void {
    const over = room.guests + room.leaving.size === 0
    // A later room may have the key by now.
    if (over && this.#rooms.get(room.key) === room) this.#rooms.delete(room.key)
  }

  async #giveBack(room: Room, ticket: number): Promise<void> {
    try {
      await this.#ask(LEAVE, room, [ticket])
    } catch (error) {
      const until = performance.now() + this.#options.leaseMs
      this.#roomOf(room.key, room.limit).leaving.set(ticket, until)
      this.#keepUp(LOOK_MS)
      throw error
    }
  }

  /** Whether the ticket is newly in. Whoever has left meanwhile gives the place back that came too late. */
  #enter(room: Room, ticket: number): boolean {
    if (!this.#tickets.has(ticket)) {
      this.#giveBack(room, ticket).catch(() => {})
      return false
    }
    if (room.inside.has(ticket)) return false
    room.line.delete(ticket)
    room.inside.add(ticket)
    this.#keepUp(this.#renewMs)
    return true
  }

  #listen(): void {
    if (this.#closed) return
    this.#unsubscribe ??= this.#options.subscribe?.(this.#script.channel, (message) => {
      const ticket = Number(message.slice(this.#process.length + 1))
      const room = this.#tickets.get(ticket)?.room
      if (room) void this.#look(room, [ticket])
    })
    this.#looking ??= this.#later(() => this.#lookEverywhere(), LOOK_MS)
  }

  async #lookEverywhere(): Promise<void> {
    const rooms = [...this.#rooms.values()].filter(({ line }) => line.size > 0)
    await Promise.all(rooms.map((room) => this.#look(room, [...room.line].slice(0, MOST_AT_ONCE))))
    this.#looking = undefined
    if ([...this.#rooms.values()].some(({ line }) => line.size > 0)) this.#listen()
  }

  /** Lets those in who got a place, and those in line again whom Redis does not know any more. Never rejects. */
  async #look(room: Room, tickets: readonly number[]): Promise<void> {
    try {
      const states = await this.#ask(LOOK, room, tickets, true)
      for (const [i, ticket] of tickets.entries()) {
        let state = states[i]
        if (state === UNKNOWN && room.line.has(ticket)) state = await this.#ask(TAKE, room, [ticket], true)
        if (state === INSIDE && this.#enter(room, ticket)) this.#options.report(ticket, 'granted')
      }
      this.failure = undefined
    } catch (error) {
      this.failure = error
    }
  }

  #keepUp(inMs: number): void {
    if (!this.#renewing) this.#renewing = this.#later(() => this.#renew(), inMs)
  }

  async #renew(): Promise<void> {
    const failed = (await Promise.all(this.#busyRooms().map((room) => this.#renewIn(room)))).includes(true)
    this.#renewing = undefined
    if (this.#busyRooms().length === 0 || (failed && this.#closed)) return
    // What could not be renewed is tried again soon: the lease goes on running out.
    this.#keepUp(failed ? LOOK_MS : this.#renewMs)
  }

  #busyRooms(): Room[] {
    return [...this.#rooms.values()].filter(({ inside, leaving }) => inside.size + leaving.size > 0)
  }

  /** Returns whether it failed. */
  async #renewIn(room: Room): Promise<boolean> {
    try {
      for (const part of inParts(room.inside)) {
        // Whoever left meanwhile must not be let in again.
        const some = part.filter((ticket) => room.inside.has(ticket))
        const states = await this.#ask(RENEW, room, some)
        for (const [j, ticket] of some.entries()) {
          if (states[j] === UNKNOWN && room.inside.delete(ticket)) this.#options.report(ticket, 'lost')
        }
      }
      const now = performance.now()
      for (const [ticket, until] of room.leaving) if (until < now) room.leaving.delete(ticket)
      for (const some of inParts(room.leaving.keys())) {
        await this.#ask(LEAVE, room, some)
        for (const ticket of some) room.leaving.delete(ticket)
      }
      this.#tidy(room)
      return false
    } catch {
      return true
    }
  }

  get #renewMs(): number {
    return Math.min(this.#options.leaseMs / 3, LONGEST_RENEW_MS)
  }

  /** A digit for each ticket. */
  async #ask(operation: number, room: Room, tickets: readonly number[], wait = false): Promise<string> {
    const { calls } = this.#options
    const refusal = calls.refusal(() => this.#probe(room))
    if (refusal) throw refusal
    for (const ticket of tickets) {
      const known = this.#tickets.get(ticket)
      if (known) known.asked = true
    }
    return calls.send(() => this.#script.run(operation, room, tickets, wait))
  }

  /** Before anybody new is let in where Redis has lost its data, it hears of those who are. Nobody's leave does nothing. */
  #probe(room: Room): Promise<string> {
    const [inside = []] = inParts(room.inside)
    return this.#script.run(inside.length > 0 ? RENEW : LEAVE, room, inside)
  }

  /** Whoever waits or works keeps the process alive; this does not. */
  #later(task: () => Promise<void>, ms: number): ReturnType<typeof setTimeout> {
    const timer = setTimeout(() => void task(), ms)
    timer.unref?.()
    return timer
  }
}

interface Room {
  readonly key: string
  limit: number
  /** Tickets that are here, in line, inside, or asking. */
  guests: number
  /** Tickets in line, oldest first. */
  readonly line: Set<number>
  /** Tickets that have a place. */
  readonly inside: Set<number>
  /** Tickets that could not be given back, and when they end by themselves. */
  readonly leaving: Map<number, number>
}

interface Ticket {
  readonly room: Room
  /** Whether Redis may know of it. */
  asked: boolean
}

const LOOK_MS = 100
/** For little longer nobody new is let in where Redis has lost its data: so soon all places are known again. */
const LONGEST_RENEW_MS = 500
/** Tickets in one call: a script holds up everybody else. */
const MOST_AT_ONCE = 100

function inParts(tickets: Iterable<number>): readonly (readonly number[])[] {
  const all = [...tickets]
  const parts = Math.ceil(all.length / MOST_AT_ONCE)
  return Array.from({ length: parts }, (_, i) => all.slice(i * MOST_AT_ONCE, (i + 1) * MOST_AT_ONCE))
}
