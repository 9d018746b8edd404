import type { Policy } from '../policy.js'
import { undecided } from '../resilience/failure-mode.js'
import { type Answer, type Booking, isDenied, type Keyspace, type MaybePromise } from '../stores/store.js'
import { type Seen, Slice, type Waiting } from './slice.js'
import type { Slices } from './slices.js'
import type { Terms } from './terms.js'

export interface LeasedKeyspaceOptions {
  /** The state in the store, opened with `terms.booked`. */
  readonly state: Keyspace
  readonly terms: Terms
  readonly slices: Slices
  /** Most units that are booked ahead in one call. */
  readonly size: number
  /** Microseconds, on a clock of this process. */
  readonly now: () => number
}

/**
 * One limiter's state, of which this process holds slices. `consume` is served from the key's slice where it can be.
 * Where one has to be booked first, callers wait for it together as far as it will go, and where the store does not
 * grant so much at once, each asks for itself. Everything else asks the store, where units in slices count as used.
 *
 * Lists of policies are the told ones, and stand for the booked ones: a list has a keyspace of its own.
 */
export class LeasedKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly #options: LeasedKeyspaceOptions
  readonly #state: Keyspace
  readonly #booked: readonly Policy[]

  constructor(options: LeasedKeyspaceOptions) {
    this.#options = options
    this.#state = options.state
    this.#booked = options.terms.booked
    this.policies = options.terms.told
  }

  consume(_told: readonly Policy[], key: string, cost: number): MaybePromise<Answer> {
    const { slices, size, terms, now: clock } = this.#options
    if (cost === 0) return this.#state.consume(this.#booked, key, cost)
    const now = clock()
    const found = slices.find(this.#booked, key, now)
    if (!(found instanceof Slice)) return this.#ask(key, cost, found)
    return (
      found.serve(cost, now) ??
      found.join(cost) ??
      (found.begin(cost, size, terms.most) ? this.#bookWith(found, key, cost) : this.#ask(key, cost, found))
    )
  }

  peek(_told: readonly Policy[], key: string, cost: number): MaybePromise<Answer> {
    return this.#state.peek(this.#booked, key, cost)
  }

  book(_told: readonly Policy[], key: string, cost: number, maxWait: number): MaybePromise<Answer> {
    return this.#state.book(this.#booked, key, cost, maxWait)
  }

  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    return this.#state.confirm(booking)
  }

  cancel(booking: Booking): MaybePromise<boolean> {
    return this.#state.cancel(booking)
  }

  refund(_told: readonly Policy[], key: string, cost: number): MaybePromise<void> {
    return this.#state.refund(this.#booked, key, cost)
  }

  charge(_told: readonly Policy[], key: string, cost: number): MaybePromise<void> {
    return this.#state.charge(this.#booked, key, cost)
  }

  block(key: string, duration: number): MaybePromise<void> {
    this.#options.slices.drop(key)
    return this.#state.block(key, duration)
  }

  hold(key: string, duration: number): MaybePromise<void> {
    this.#options.slices.drop(key)
    return this.#state.hold(key, duration)
  }

  reset(key: string): MaybePromise<void> {
    this.#options.slices.drop(key)
    return this.#state.reset(key)
  }

  /** One call for itself. What its answer tells to be left is noted for the next slice. */
  #ask(key: string, cost: number, note: Slice | Seen | undefined): MaybePromise<Answer> {
    const asked = this.#state.consume(this.#booked, key, cost)
    return note && asked instanceof Promise ? noted(asked, note) : asked
  }

  /** Books for the first caller, for those who join, and for later. The booking never rejects: callers do. */
  #bookWith(slice: Slice, key: string, cost: number): Promise<Answer> {
    const first = slice.wait(cost)
    void this.#book(slice, key)
    return first
  }

  async #book(slice: Slice, key: string): Promise<void> {
    await Promise.resolve() // who calls in the same turn of the event loop comes along
    const { size, terms, now: clock } = this.#options
    const callers: Waiting[] = []
    try {
      const { wanted, spare } = slice.send(callers, size, terms.most)
      // The store may decide as soon as the call is sent: the lease counts from here.
      const sent = clock()
      const answer = await this.#state.consume(this.#booked, key, wanted + spare)
      const heard = clock()
      slice.known = answer.degraded ? 0 : answer.remaining
      const late = slice.end()
      if (answer.degraded) return this.#standIn(answer, key, wanted + spare, [...callers, ...late])
      if (!isDenied(answer)) {
        slice.fill(answer, spare, sent + terms.life(answer.now), heard)
        for (const { resolve } of callers) resolve(answer)
        for (const { cost, resolve } of late) resolve(slice.serve(cost, heard) ?? this.#ask(key, cost, slice))
      } else if (callers.length === 1 && spare === 0 && late.length === 0) {
        callers[0]!.resolve(answer)
      } else {
        for (const { cost, resolve } of [...callers, ...late]) resolve(this.#ask(key, cost, slice))
      }
    } catch (error) {
      slice.known = 0
      for (const { reject } of [...callers, ...slice.end()]) reject(error)
    }
  }

  /** The store did not decide. Nobody waits for it once more: what stood in for it decides for all. */
  #standIn(answer: Answer, key: string, booked: number, callers: readonly Waiting[]): void {
    const { by, why } = answer.degraded!
    if (!by) return callers.forEach(({ resolve }) => resolve(answer))
    if (!isDenied(answer)) void by.refund(this.#booked, key, booked)
    for (const { cost, resolve } of callers) {
      const own = by.consume(this.#booked, key, cost) as Answer // memory answers at once
      const allowed = own.reason === undefined
      // Nobody waits here whose cost is above the whole capacity, so it is the share that is too small.
      resolve(own.reason === 'cost' ? undecided(why, false) : { ...own, degraded: { why, allowed, by } })
    }
  }
}

async function noted(asked: Promise<Answer>, note: Slice | Seen): Promise<Answer> {
  const answer = await asked
  note.known = answer.degraded ? 0 : answer.remaining
  return answer
}
