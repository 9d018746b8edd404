import type { Policy, View } from '../../algorithms/contract/policy.js'
import type { Answer, Ask, Booking, Correction, DatedCharge, Reason, Report } from '../store.js'
import { Barriers } from './barriers.js'
import { Bookings, type MemoryBooking } from './bookings.js'
import { CHUNK_SLOTS, type Chunk, type Chunks } from './chunks.js'
import { Cursor } from './cursor.js'
import { MemoryAnswer } from './memory-answer.js'
import { PlainCalls } from './plain-calls.js'
import type { Retention } from './retention.js'
import { Tiers } from './tiers.js'

/** What a table needs of the store it belongs to. */
export interface TableOwner {
  /** The slots of all its tables. */
  readonly chunks: Chunks
  readonly retention: Retention
  now(): number
  /** A key is about to be added; frees another one, in any table, if the store is full. */
  adding(now: number): void
  /** A key is gone. */
  removed(): void
}

/** A list of policies, and its number in the table. */
export interface PolicyList {
  readonly policies: readonly Policy[]
  readonly tier: number
}

/** The state of every key of one limiter under lists of one shape. Calls bring the list of their keyspace along. */
export class Table {
  readonly cursor: Cursor
  readonly barriers = new Barriers()
  readonly bookings = new Bookings()
  readonly tiers: Tiers
  /** Set when the store let it go, as it held no key: another one may stand for its shapes. */
  isDropped = false
  /** Those who hear of what happens to its keys. */
  readonly reports = new Set<Report>()
  /** The `maxKeys` that was last reported to have been needed; 1 where only a warning before was; 0 before that. */
  neededKeys = 0
  readonly #chunks: Chunk[] = []
  readonly #owner: TableOwner
  readonly #view: View = { remaining: 0, resetAt: 0 }
  readonly #plain: PlainCalls | undefined

  constructor(policies: readonly Policy[], owner: TableOwner) {
    this.cursor = new Cursor(policies)
    this.tiers = new Tiers(policies)
    this.#owner = owner
    this.#plain = PlainCalls.of(policies, this.cursor)
  }

  decide(list: PolicyList, ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const now = this.#owner.now()
    const slot = this.cursor.slots.find(key)
    this.cursor.moveTo(slot)
    const isPlain =
      ask === 'consume' && cost > 0 && slot !== 0 && this.barriers.size + this.bookings.size === 0
    const answer = isPlain ? this.#plain?.decide(list.policies, now, cost) : undefined
    if (!answer) return this.#general(list, ask, key, slot, now, cost, maxWait)
    if (answer.reason !== 'cost') this.cursor.slots.note(slot, list.tier, answer.reason === 'limit')
    return answer
  }

  /** Everything else: any call, under any list of policies. */
  #general(
    list: PolicyList,
    ask: Ask,
    key: string,
    held: number,
    now: number,
    cost: number,
    maxWait: number,
  ): Answer {
    const { policies } = list
    const { cursor, barriers } = this
    let slot = held
    const until = barriers.size === 0 ? now : Math.max(now, barriers.until(slot))
    const from = cost === 0 ? until : Math.max(until, this.bookings.lastOf(slot))

    let at = from
    let binding = 0
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      const earliest = cost === 0 ? from : policy.algorithm.earliest(cursor.states[i]!, policy, from, cost)
      cursor.instants[i] = earliest
      if (earliest > at) {
        at = earliest
        binding = i
      }
    }

    let reason: Reason | undefined
    if (at === Infinity) reason = 'cost'
    else if (until > now && barriers.blockedUntil(slot) > now) reason = 'blocked'
    else if (at > now + maxWait) reason = barriers.heldUntil(slot) > now ? 'held' : 'limit'

    let booking: MemoryBooking | undefined
    if (reason === undefined && cost > 0 && ask !== 'peek') {
      if (slot === 0) slot = this.#add(key, now)
      cursor.slots.note(slot, list.tier, false)
      if (at > now) booking = this.#booking(slot, key, at, cost, now)
      else this.bookings.touch(slot)
      cursor.admit(policies, at, cost)
      if (booking) for (const ring of cursor.rings()) ring.seal()
    } else if (reason === 'limit' && slot !== 0 && ask !== 'peek') {
      cursor.slots.note(slot, list.tier, true)
    }
    const open = Math.max(until, this.bookings.lastOf(slot))
    return this.#answer(policies, now, at, reason, binding, until, open, booking)
  }

  confirm(booking: Booking): 'stands' | 'lost' | 'held' {
    const now = this.#owner.now()
    if ((booking as MemoryBooking).undo.life.lost) return 'lost'
    return this.barriers.until(this.cursor.slots.find(booking.key)) > now ? 'held' : 'stands'
  }

  cancel(policies: readonly Policy[], booking: Booking): boolean {
    const now = this.#owner.now()
    const place = booking as MemoryBooking
    if (place.isCancelled) return false
    place.isCancelled = true
    const slot = this.cursor.slots.find(place.key)
    if (this.bookings.undo(slot, place.undo)) {
      this.cursor.moveTo(slot)
      this.cursor.restore(place.undo)
      return true
    }
    if (!place.undo.life.lost) this.#release(policies, slot, now, place, place.cost)
    return false
  }

  correct(list: PolicyList, change: Correction): number {
    const { policies } = list
    const now = this.#owner.now()
    const { key } = change
    switch (change.kind) {
      case 'refund':
        return this.#refund(policies, this.cursor.slots.find(key), now, change.cost)
      case 'charge':
        return this.#charge(policies, this.#slotFor(key, now, list), now, change.cost)
      case 'release':
        return this.#release(policies, this.cursor.slots.find(key), now, change.charge, change.units)
      case 'block':
        this.barriers.block(this.#slotFor(key, now, list), now + change.duration)
        return 0
      case 'hold':
        this.barriers.hold(this.#slotFor(key, now, list), now + change.duration)
        return 0
      case 'reset': {
        const slot = this.cursor.slots.find(key)
        if (slot !== 0) this.lose(slot)
        return 0
      }
    }
  }

  /** Forgets what a slot holds before its time: those who wait for a booked place learn that it is gone. */
  lose(slot: number): void {
    this.bookings.lose(slot)
    this.release(slot)
  }

  /** Frees a slot that holds nothing any more. */
  release(slot: number): void {
    this.bookings.forget(slot)
    this.barriers.clear(slot)
    this.cursor.slots.release(slot)
    if (this.cursor.slots.size === 0)
      for (const chunk of this.#chunks.splice(0)) this.#owner.chunks.remove(chunk)
    this.#owner.removed()
  }

  #refund(policies: readonly Policy[], slot: number, now: number, cost: number): number {
    if (slot === 0) return 0
    this.cursor.moveTo(slot)
    this.bookings.touch(slot)
    return this.cursor.admit(policies, now, -cost)
  }

  /** What lies in a state that began after the charge was decided is others'. */
  #release(
    policies: readonly Policy[],
    slot: number,
    now: number,
    charge: DatedCharge,
    units: number,
  ): number {
    if (slot === 0) return 0
    this.cursor.moveTo(slot)
    if (charge.decidedAt < this.cursor.born) return 0
    this.bookings.touch(slot)
    return this.cursor.release(policies, Math.max(now, this.bookings.lastOf(slot)), charge, units)
  }

  #charge(policies: readonly Policy[], slot: number, now: number, cost: number): number {
    this.bookings.touch(slot)
    return this.cursor.admit(policies, Math.max(now, this.bookings.lastOf(slot)), cost)
  }

  #booking(slot: number, key: string, at: number, cost: number, decidedAt: number): MemoryBooking {
    const undo = this.bookings.open(slot, at, this.cursor.cells(), this.cursor.rings())
    return { key, at, cost, decidedAt, undo, isCancelled: false }
  }

  /** Until `open` the key is barred or places ahead are booked: nothing is left, and it stands as it will then. */
  #answer(
    policies: readonly Policy[],
    now: number,
    at: number,
    reason: Reason | undefined,
    binding: number,
    until: number,
    open: number,
    booking: Booking | undefined,
  ): Answer {
    const { cursor } = this
    const view = this.#view
    const parts: number[] | undefined = policies.length > 1 ? [] : undefined
    let remaining = Infinity
    let resetAt = until
    for (let i = 0; i < policies.length; i++) {
      const policy = policies[i]!
      policy.algorithm.view(cursor.states[i]!, policy, Math.max(now, open), view)
      if (open > now) view.remaining = 0
      if (view.remaining < remaining) {
        remaining = view.remaining
        if (reason === undefined) binding = i
      }
      if (view.resetAt > resetAt) resetAt = view.resetAt
      parts?.push(cursor.instants[i]!, view.remaining, view.resetAt)
    }
    return new MemoryAnswer(now, at, reason, binding, remaining, resetAt, parts, booking)
  }

  /** The slot of `key`, made if need be, with the cursor on it. */
  #slotFor(key: string, now: number, { tier }: PolicyList): number {
    const { slots } = this.cursor
    const slot = slots.find(key) || this.#add(key, now)
    slots.note(slot, tier, false)
    this.cursor.moveTo(slot)
    return slot
  }

  /** A slot for a key that has none, with the cursor on it. */
  #add(key: string, now: number): number {
    const { chunks, retention } = this.#owner
    this.#owner.adding(now)
    const slot = this.cursor.slots.allocate(key)
    const first = this.#chunks.length * CHUNK_SLOTS
    if (slot >= first) this.#chunks.push(chunks.add(this, first))
    retention.added(this, slot)
    this.cursor.moveTo(slot)
    this.cursor.born = now
    return slot
  }
}
