import type { Policy } from '../algorithms/contract/policy.js'
import { undecidedAnswer } from '../resilience/failure.js'
import {
  type Answer,
  type Ask,
  type Booking,
  type Caller,
  type Correction,
  isAboutKey,
  isDenied,
  type Keyspace,
  type MaybePromise,
} from '../stores/store.js'
import { type Seen, Slice, type Waiting } from './slice.js'
import type { Slices } from './slices.js'
import type { Terms } from './terms.js'

export interface LeasedKeyspaceOptions {
  /** The state in the store, opened with `terms.booked`: every call is decided by these policies. */
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
 */
export class LeasedKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly #options: LeasedKeyspaceOptions
  readonly #state: Keyspace

  constructor(options: LeasedKeyspaceOptions) {
    this.#options = options
    this.#state = options.state
    this.policies = options.terms.told
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    if (ask !== 'consume' || cost === 0) return this.#state.decide(ask, key, cost, maxWait, caller)
    const { slices, size, terms, now: clock } = this.#options
    const now = clock()
    const found = slices.find(this.#state.policies, key, now)
    if (!(found instanceof Slice)) return this.#ask(key, cost, found)
    return (
      found.serve(cost, now) ??
      found.join(cost) ??
      (found.begin(cost, size, terms.most) ? this.#bookWith(found, key, cost) : this.#ask(key, cost, found))
    )
  }

  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    return this.#state.confirm(booking)
  }

  cancel(booking: Booking): MaybePromise<boolean> {
    return this.#state.cancel(booking)
  }

  correct(change: Correction): MaybePromise<number> {
    if (isAboutKey(change)) this.#options.slices.drop(change.key)
    return this.#state.correct(change)
  }

  /** One call for itself. What its answer tells to be left is noted for the next slice. */
  #ask(key: string, cost: number, note: Slice | Seen | undefined): MaybePromise<Answer> {
    const asked = this.#consume(key, cost)
    return note && asked instanceof Promise ? noted(asked, note) : asked
  }

  #consume(key: string, cost: number): MaybePromise<Answer> {
    return this.#state.decide('consume', key, cost, 0)
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
      const answer = await this.#consume(key, wanted + spare)
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
    if (!isDenied(answer)) {
      const charge = { at: answer.at, cost: booked, decidedAt: answer.now }
      void by.correct({ kind: 'release', key, charge, units: booked })
    }
    for (const { cost, resolve } of callers) {
      const own = by.decide('consume', key, cost, 0) as Answer // memory answers at once
      const allowed = own.reason === undefined
      // Nobody waits here whose cost is above the whole capacity, so it is the share that is too small.
      resolve(
        own.reason === 'cost' ? undecidedAnswer(why, false) : { ...own, degraded: { why, allowed, by } },
      )
    }
  }
}

async function noted(asked: Promise<Answer>, note: Slice | Seen): Promise<Answer> {
  const answer = await asked
  note.known = answer.degraded ? 0 : answer.remaining
  return answer
}
