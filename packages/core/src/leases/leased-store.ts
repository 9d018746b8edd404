import type { Policy } from '../algorithms/contract/policy.js'
import { decideParts } from '../resilience/decide-parts.js'
import { degradedAnswer } from '../resilience/failure.js'
import { resilientPermits, resilientStore } from '../resilience/resilient-store.js'
import { giveBack } from '../stores/giving-back.js'
import type { LeaseSettings } from '../stores/guard-options.js'
import type { Answer, Ask, Booking, Caller, Correction, Keyspace } from '../stores/store.js'
import type { MaybePromise, Report, Store, StoreGuard } from '../stores/store.js'
import { isAboutKey, isDenied } from '../stores/store.js'
import { WeakValues } from '../values/weak-values.js'
import { type LeaseTerms, leaseTermsOf } from './lease-terms.js'
import { type ColdKey, isLeased, Lease, type LeaseWaiter } from './lease.js'
import { Leases } from './leases.js'

/** The guard of every store that is not in this process: deadline, circuit, failure mode, denial cache, leases, and calls on several keys. */
export const guard: StoreGuard = {
  store: (store, settings) => leasedStore(resilientStore(store, settings), settings.leases),
  permits: resilientPermits,
  decideParts,
}

/** The store as a limiter uses it that may have leases, over one that `resilientStore` has made. */
function leasedStore(store: Store, settings: LeaseSettings | undefined): Store {
  if (settings === undefined) return store
  const { ttl, size, maxKeys } = settings
  /** By the shapes of the policies: lists of equal shapes share their leases. Each is held by its keyspaces. */
  const leasesByShapes = new WeakValues<Leases>()
  return {
    ...store,
    /** Opens the state of a limiter under policies that keep units back for leases. */
    keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
      const terms = leaseTermsOf(policies, ttl)
      const state = store.keyspace(name, terms.booked, report)
      const id = terms.booked.map(({ shape }) => shape).join('\n')
      const leases = leasesByShapes.get(id, () => new Leases(ttl * 1000, maxKeys))
      return new LeasedKeyspace(state, terms, leases, size, () => store.now())
    },
    /** Drops all leases and closes the store. Their units stay charged. */
    close() {
      for (const leases of leasesByShapes.values()) leases.clear()
      return store.close()
    },
  }
}

/**
 * One limiter's state, of which this process leases parts. `consume` is served from the key's lease if that holds the
 * units. Otherwise one call books for all that wait, as far as the remaining allowance is likely to go; if the store denies
 * that much, each call asks for itself. All other operations ask the store, where leased units count as used.
 */
class LeasedKeyspace implements Keyspace {
  readonly policies: readonly Policy[]

  /**
   * `state` is that in the store, opened with `terms.booked`; `size` the most units that one call prefetches; `now` microseconds
   * on a clock of this process.
   */
  constructor(
    private readonly state: Keyspace,
    private readonly terms: LeaseTerms,
    private readonly leases: Leases,
    private readonly size: number,
    private readonly now: () => number,
  ) {
    this.policies = terms.reported
  }

  /**
   * Serves a call from a lease of its key, joins a booking in flight, or begins one. Reading, booking ahead and a key
   * without a lease go to the store. A part of several keys ('try', 'reserve') takes leased units or goes to the store
   * as well.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    if (ask === 'peek' || ask === 'book' || cost === 0) {
      return this.state.decide(ask, key, cost, maxWait, caller)
    }
    const { leases, size, terms } = this
    const now = this.now()
    const found = leases.findOrBegin(this.state.policies, key, now)
    if (ask !== 'consume') {
      const leased = found instanceof Lease ? found.reserve(key, cost, now, ask === 'reserve') : undefined
      return leased ?? this.state.decide(ask, key, cost, maxWait, caller)
    }
    if (!(found instanceof Lease)) return this.#ask(key, cost, found)
    const answer = found.serve(cost, now) ?? found.join(cost)
    if (answer) return answer
    if (!found.beginBooking(cost, size, terms.mostUnits)) return this.#ask(key, cost, found)
    return this.#bookFor(cost, found, key)
  }

  /** Asks the store how a booking stands at its turn: only the store books ahead, a lease never does. */
  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    return this.state.confirm(booking)
  }

  /**
   * Takes a booking back. Units of a lease return to it, and false is returned where that is over: then they are
   * released in the store.
   */
  cancel(booking: Booking, caller?: Caller): MaybePromise<boolean> {
    if (!isLeased(booking)) return this.state.cancel(booking, caller)
    const { key, cost } = booking
    if (booking.lease.putBack(booking)) return true
    const released = this.state.correct({ kind: 'release', key, charge: booking, units: cost })
    return released instanceof Promise ? released.then(() => false) : false
  }

  /** Corrects the state in the store. A change of the whole key, such as a block or a reset, ends its lease here first. */
  correct(change: Correction): MaybePromise<number> {
    if (isAboutKey(change)) this.leases.drop(change.key)
    return this.state.correct(change)
  }

  /** Asks the store for one call alone, and records what remains, by which the next lease is measured. */
  #ask(key: string, cost: number, record: Lease | ColdKey | undefined): MaybePromise<Answer> {
    const answer = this.#consume(key, cost)
    return record && answer instanceof Promise ? recorded(answer, record) : answer
  }

  /** Charges `cost` units of the key in the store, if they fit there now. */
  #consume(key: string, cost: number): MaybePromise<Answer> {
    return this.state.decide('consume', key, cost, 0)
  }

  /**
   * Waits, as the first of its calls, for a booking that this begins. The promise of `#book` is not needed: it hands
   * the outcome to the calls that wait and never rejects.
   */
  #bookFor(cost: number, lease: Lease, key: string): Promise<Answer> {
    const first = lease.wait(cost)
    void this.#book(lease, key)
    return first
  }

  /**
   * Makes one charge in the store for all calls of the key that wait, and for units to prefetch, and answers the
   * calls. If the store denies that many units, each call asks for itself, since fewer may still fit. If the charge
   * fails, all calls fail.
   */
  async #book(lease: Lease, key: string): Promise<void> {
    await Promise.resolve() // so that calls made in the same turn of the event loop join
    const { size, terms } = this
    const callers: LeaseWaiter[] = []
    let late: LeaseWaiter[] = []
    try {
      const { waiters, wanted, spare } = lease.sendBooking(size, terms.mostUnits)
      callers.push(...waiters)
      // The lease counts from here, because the store may decide as soon as the call is sent.
      const sent = this.now()
      const answer = await this.#consume(key, wanted + spare)
      const receivedAt = this.now()
      lease.remaining = answer.degraded ? 0 : answer.remaining
      late = lease.endBooking()
      if (answer.degraded) return this.#fallBack(answer, key, wanted + spare, [...callers, ...late])
      if (!isDenied(answer)) {
        lease.fill(answer, spare, sent + terms.lifetime(answer.now), receivedAt)
        for (const { resolve } of callers) resolve(answer)
        for (const { cost, resolve } of late) {
          resolve(lease.serve(cost, receivedAt) ?? this.#ask(key, cost, lease))
        }
      } else if (callers.length === 1 && spare === 0 && late.length === 0) {
        callers[0]!.resolve(answer)
      } else {
        for (const { cost, resolve } of [...callers, ...late]) resolve(this.#ask(key, cost, lease))
      }
    } catch (error) {
      lease.remaining = 0
      for (const { reject } of [...callers, ...late, ...lease.endBooking()]) reject(error)
    }
  }

  /**
   * Answers the calls of a booking that the store did not decide. The keyspace that stood in for it decides each call
   * by itself, after the charge for all of them is undone there. Under 'allow' and 'deny' there is none, and all get
   * the same answer.
   */
  #fallBack(answer: Answer, key: string, booked: number, callers: readonly LeaseWaiter[]): void {
    const { by, why } = answer.degraded!
    if (!by) return callers.forEach(({ resolve }) => resolve(answer))
    void giveBack(by, key, booked, answer)
    for (const { cost, resolve } of callers) {
      const own = by.decide('consume', key, cost, 0) as Answer // memory answers at once
      // A cost above the whole capacity never waits here, so only this process's share is too small.
      resolve(degradedAnswer(why, own, by, false))
    }
  }
}

/** The answer, with what remains of the key recorded; 0 where the store did not decide, so that nothing is leased. */
async function recorded(asked: Promise<Answer>, record: Lease | ColdKey): Promise<Answer> {
  const answer = await asked
  record.remaining = answer.degraded ? 0 : answer.remaining
  return answer
}
