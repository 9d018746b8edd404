import { randomBytes } from 'node:crypto'
import { Deadline } from '../resilience/deadline.js'
import type { Subscribe } from '../stores/redis/clients/subscription.js'
import { modules } from '../stores/redis/modules.gen.js'
import { keyspaceOf, redisKey } from '../stores/redis/redis-key.js'
import type { ScriptRunner } from '../stores/redis/script-runner.js'
import type { Places, PlacesOptions } from './places.js'

export interface RedisPlacesOptions extends PlacesOptions {
  readonly prefix: string
  readonly runner: ScriptRunner
  readonly subscribe: Subscribe | undefined
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly closed: () => void
}

/**
 * The places of one semaphore of this process, in Redis: lua/semaphore.lua is the other half. A ticket in line is told
 * of its place on a channel of this process; whoever was not told looks every 100 ms, which also keeps the tickets of
 * this process alive and gets them in line again where Redis has lost its data. Places are renewed twice a
 * second, or three times a lease.
 */
export class RedisPlaces implements Places {
  readonly #options: RedisPlacesOptions
  readonly #process = randomBytes(9).toString('base64url')
  readonly #channel: string
  readonly #deadline: Deadline
  /** By key: the tickets in line, oldest first, and those that have a place. */
  readonly #rooms = new Map<string, Room>()
  readonly #keys = new Map<number, string>()
  #unsubscribe: (() => void) | undefined
  #looking: ReturnType<typeof setTimeout> | undefined
  #renewing: ReturnType<typeof setTimeout> | undefined
  #closed = false
  failure: unknown

  constructor(options: RedisPlacesOptions) {
    this.#options = options
    this.#deadline = new Deadline(options.deadlineMs)
    this.#channel = `${keyspaceOf(options.prefix, options.name, ['semaphore'])}:to:`
  }

  async take(key: string, ticket: number, limit: number, wait: boolean): Promise<boolean> {
    const room = this.#roomOf(key, limit)
    if (wait) room.line.add(ticket)
    this.#keys.set(ticket, key)
    try {
      const state = await this.#ask(TAKE, room, [ticket], wait)
      this.failure = undefined
      if (state === INSIDE) return this.#enter(room, ticket)
      if (!wait) this.#forget(room, ticket)
    } catch (error) {
      if (!wait) {
        void this.leave(key, ticket).catch(() => {}) // it may have been carried out
        throw error
      }
      this.failure = error
    }
    if (wait) this.#listen()
    return false
  }

  async leave(key: string, ticket: number): Promise<void> {
    const room = this.#rooms.get(key)
    if (!room) return
    this.#forget(room, ticket)
    await this.#ask(LEAVE, room, [ticket])
  }

  close(): void {
    this.#closed = true
    this.#deadline.close()
    clearTimeout(this.#looking)
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#options.closed()
  }

  #roomOf(key: string, limit: number): Room {
    let room = this.#rooms.get(key)
    if (!room) this.#rooms.set(key, (room = { key, limit, line: new Set(), inside: new Set() }))
    return room
  }

  #forget(room: Room, ticket: number): void {
    room.line.delete(ticket)
    room.inside.delete(ticket)
    this.#keys.delete(ticket)
    if (room.line.size === 0 && room.inside.size === 0) this.#rooms.delete(room.key)
  }

  /** Whether the ticket is newly in. Whoever has left meanwhile gives the place back that came too late. */
  #enter({ key, limit }: Room, ticket: number): boolean {
    const room = this.#roomOf(key, limit)
    if (room.inside.has(ticket)) return false
    if (!this.#keys.has(ticket)) {
      void this.leave(key, ticket).catch(() => {})
      return false
    }
    room.line.delete(ticket)
    room.inside.add(ticket)
    if (!this.#renewing) this.#renewing = this.#later(() => this.#renew(), this.#renewMs)
    return true
  }

  #listen(): void {
    if (this.#closed) return
    this.#unsubscribe ??= this.#options.subscribe?.(`${this.#channel}${this.#process}`, (message) => {
      const ticket = Number(message.slice(this.#process.length + 1))
      const room = this.#rooms.get(this.#keys.get(ticket) ?? '')
      if (room) this.#look(room, [ticket]).catch(() => {})
    })
    this.#looking ??= this.#later(() => this.#lookEverywhere(), LOOK_MS)
  }

  async #lookEverywhere(): Promise<void> {
    const rooms = [...this.#rooms.values()].filter(({ line }) => line.size > 0)
    await Promise.all(rooms.map((room) => this.#look(room, [...room.line].slice(0, MOST_AT_ONCE))))
    this.#looking = undefined
    if ([...this.#rooms.values()].some(({ line }) => line.size > 0)) this.#listen()
  }

  /** Lets those in who got a place, and those in line again whom Redis does not know any more. */
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

  async #renew(): Promise<void> {
    const rooms = [...this.#rooms.values()].filter(({ inside }) => inside.size > 0)
    const failed = (await Promise.all(rooms.map((room) => this.#renewIn(room)))).includes(true)
    this.#renewing = undefined
    const holding = [...this.#rooms.values()].some(({ inside }) => inside.size > 0)
    if (!holding || (failed && this.#closed)) return
    // What could not be renewed is tried again soon: the lease goes on running out.
    this.#renewing = this.#later(() => this.#renew(), failed ? LOOK_MS : this.#renewMs)
  }

  /** Returns whether it failed. */
  async #renewIn(room: Room): Promise<boolean> {
    const tickets = [...room.inside]
    try {
      for (let i = 0; i < tickets.length; i += MOST_AT_ONCE) {
        const some = tickets.slice(i, i + MOST_AT_ONCE)
        const states = await this.#ask(RENEW, room, some)
        for (const [j, ticket] of some.entries()) {
          if (states[j] === UNKNOWN && room.inside.delete(ticket)) this.#options.report(ticket, 'lost')
        }
      }
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
    const { prefix, name, runner, leaseMs, clock } = this.#options
    const lease = leaseMs * 1000
    const numbers = [operation, room.limit, lease, Math.min(lease, CLAIM_US), ALIVE_US, clock(), wait ? 1 : 0]
    const words = [this.#channel, this.#process, ...tickets.map((ticket) => `${this.#process}:${ticket}`)]
    const argument = Buffer.concat([packed(numbers), Buffer.from(words.join('\n'))])
    const key = redisKey(keyspaceOf(prefix, name, ['semaphore']), room.key)
    const reply = await this.#deadline.within(runner.run(modules['semaphore']!, key, argument))
    return reply.toString()
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
  readonly limit: number
  readonly line: Set<number>
  readonly inside: Set<number>
}

/** Operations and states as lua/semaphore.lua numbers them. */
const [TAKE, LOOK, RENEW, LEAVE] = [1, 2, 3, 4] as const
const [UNKNOWN, INSIDE] = ['0', '2'] as const

const LOOK_MS = 100
/** For little longer nobody new is let in where Redis has lost its data: so soon all places are known again. */
const LONGEST_RENEW_MS = 500
/** How long a process is believed to be alive that does not look, in microseconds. */
const ALIVE_US = 1_000_000
/** How long a ticket keeps a place that its process was told of and has not entered. */
const CLAIM_US = 2_000_000
/** Tickets in one call: a script holds up everybody else. */
const MOST_AT_ONCE = 100

function packed(numbers: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * 8)
  for (const [i, number] of numbers.entries()) bytes.writeDoubleLE(number, i * 8)
  return bytes
}
