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

/**
 * The guard of every store that is not in this process: deadline, circuit, failure mode, denial cache, leases, and calls on
 * several keys.
 */
export const guard: StoreGuard = {
  store: (store, settings) => leasedStore(resilientStore(store, settings), settings.leases),
  permits: resilientPermits,
  decideParts,
}

/**
 * Wraps a store for a limiter with leases: units that this process charges in the store in advance and serves from memory. `store`
 * is one that `resilientStore` has made. Without `settings` it is returned as it is.
 */
function leasedStore(store: Store, settings: LeaseSettings | undefined): Store {
  if (settings === undefined) return store
  const { ttl, size, maxKeys } = settings
  /** By the shapes of the policies: lists of equal shapes share their leases. Each is held by its keyspaces. */
  const leasesByShapes = new WeakValues<Leases>()
  return {
    ...store,
    /**
     * Opens the state of a limiter. The store decides under `terms.booked`: mostly the given policies with a longer window or a
     * smaller capacity, so that units which are served some time after their charge still keep to the given ones. Lists of
     * policies with the same shapes (algorithms and windows) have one state in the store, so they share their leases too.
     */
    keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
      const terms = leaseTermsOf(policies, ttl)
      const state = store.keyspace(name, terms.booked, report)
      const id = terms.booked.map(({ shape }) => shape).join('\n')
      const leases = leasesByShapes.get(id, () => new Leases(ttl * 1000, maxKeys))
      return new LeasedKeyspace(state, terms, leases, size, () => store.now())
    },
    /** Drops all leases and closes the store. Units that the leases still hold stay charged there. */
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
   * Serves calls from `leases`, units that are charged in advance in `state`, the limiter's state in the store. The store decides by
   * the policies `terms.booked`, which are stricter, as the units are served later; callers see `terms.reported`, the limiter's own.
   * At most `size` units are charged in advance at once; `now` returns microseconds on a clock of this process.
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
   * Decides a call. A `consume` is served from the lease of its key (units charged in the store in advance), or joins the charge
   * that is being made for that lease, or begins one. A part of a call on several keys is served from the lease if that holds
   * enough: 'try' takes nothing yet, 'commit' takes the units. Any other call asks the store: one that reads or books ahead, and one
   * on a key that is not called often, for which there is no lease but only a note of the first call (ColdKey).
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    if (ask === 'peek' || ask === 'book' || cost === 0) {
      return this.state.decide(ask, key, cost, maxWait, caller)
    }
    const { leases, size, terms } = this
    const now = this.now()
    const lease = leases.findOrBegin(this.state.policies, key, now)
    if (ask !== 'consume') {
      const isLease = lease instanceof Lease
      const served = isLease && (ask === 'try' ? lease.peek(cost, now) : lease.take(key, cost, now))
      return served || this.state.decide(ask, key, cost, maxWait, caller)
    }
    if (!(lease instanceof Lease)) return this.#ask(key, cost, lease)
    const answer = lease.serve(cost, now) ?? lease.join(cost)
    if (answer) return answer
    if (!lease.beginBooking(cost, size, terms.mostUnits)) return this.#ask(key, cost, lease)
    return this.#bookFor(cost, lease, key)
  }

  /** Asks the store how a booking stands at its turn. A lease never books ahead. */
  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    return this.state.confirm(booking)
  }

  /**
   * Cancels a booking, and returns whether the state is as before it. A booking that the store has made is cancelled there. Units
   * out of a lease are put back into the lease. If it was filled anew or dropped meanwhile, they are released in the store, and the
   * result is false.
   */
  cancel(booking: Booking, caller?: Caller): MaybePromise<boolean> {
    if (!isLeased(booking)) return this.state.cancel(booking, caller)
    const { key, cost } = booking
    if (booking.lease.putBack(booking)) return true
    const released = this.state.correct({ kind: 'release', key, charge: booking, units: cost })
    return typeof released === 'number' ? false : released.then(() => false)
  }

  /** Corrects the state in the store. A change of the whole key, such as a block or a reset, ends its lease here first. */
  correct(change: Correction): MaybePromise<number> {
    if (isAboutKey(change)) this.leases.drop(change.key)
    return this.state.correct(change)
  }

  /**
   * Asks the store for one call alone. When its answer comes, what remains of the key is noted in `lease`, the key's lease or the
   * note of its first call (ColdKey): the next charge in advance is at most half of that. Nothing is noted if the key is leased under
   * other limits (undefined), or if the answer is there at once, as a cached denial is.
   */
  #ask(key: string, cost: number, lease: Lease | ColdKey | undefined): MaybePromise<Answer> {
    const answer = this.#consume(key, cost)
    return !lease || 'at' in answer ? answer : noted(answer, lease)
  }

  /** Charges `cost` units of the key in the store, if they fit there now. */
  #consume(key: string, cost: number): MaybePromise<Answer> {
    return this.state.decide('consume', key, cost, 0)
  }

  /**
   * Begins a booking, one charge in the store for all calls of the key that wait and for units in advance. Returns the promise of
   * the answer to the first of these calls, of `cost` units. If the booking fails, each call that waits gets the error, so it needs no
   * further handling here.
   */
  #bookFor(cost: number, lease: Lease, key: string): Promise<Answer> {
    const first = lease.wait(cost)
    this.#book(lease, key).catch(() => {})
    return first
  }

  /**
   * Makes one charge in the store, for all calls of the key that wait (`wanted` units) and for units in advance (`spare`), and
   * answers the calls. If it is allowed, the spare units fill the lease, and calls that joined after it was sent (`late`) are
   * served from that. If the store denies that many units, each call asks for itself, since fewer may still fit. If the store did
   * not decide, the failure mode does; if the charge fails, all calls fail. Never rejects.
   */
  async #book(lease: Lease, key: string): Promise<void> {
    await Promise.resolve() // so that calls made in the same turn of the event loop join
    const { size, terms } = this
    const callers: LeaseWaiter[] = []
    let lateCallers: LeaseWaiter[] = []
    try {
      const { waiters, wanted, spare } = lease.prepareBooking(size, terms.mostUnits)
      callers.push(...waiters)
      // The lease counts from here, because the store may decide as soon as the call is sent.
      const sentAt = this.now()
      const answer = await this.#consume(key, wanted + spare)
      const receivedAt = this.now()
      lease.remaining = answer.degraded ? 0 : answer.remaining
      lateCallers = lease.endBooking()
      const all = [...callers, ...lateCallers]
      if (answer.degraded) return this.#fallBack(answer, key, wanted + spare, all)
      if (!isDenied(answer)) {
        lease.fill(answer, spare, sentAt + terms.lifetime(answer.now), receivedAt)
        // All units count as charged with the first answer, and none with the others.
        callers.forEach(({ resolve }, i) => resolve({ slice: i === 0 ? wanted + spare : 0, ...answer }))
        for (const { cost, resolve } of lateCallers) {
          resolve(lease.serve(cost, receivedAt) ?? this.#ask(key, cost, lease))
        }
        return
      }
      const isAnswerToOneCall = all.length === 1 && spare === 0
      if (isAnswerToOneCall) all[0]!.resolve(answer)
      else for (const { cost, resolve } of all) resolve(this.#ask(key, cost, lease))
    } catch (error) {
      lease.remaining = 0
      for (const { reject } of [...callers, ...lateCallers, ...lease.endBooking()]) reject(error)
    }
  }

  /**
   * Answers the calls of a booking that the store did not decide: `answer` is that of the failure mode about all `booked` units
   * together. If a keyspace in this process (`by`) has decided, as in mode 'local', it did so under this process's share of the
   * limits. Its charge for all is undone, and it decides each call by itself. Otherwise, as in the mode 'deny', all calls get the
   * same answer.
   */
  #fallBack(answer: Answer, key: string, booked: number, callers: readonly LeaseWaiter[]): void {
    const { by, why } = answer.degraded!
    if (!by) return callers.forEach(({ resolve }) => resolve(answer))
    giveBack(by, key, booked, answer).catch(() => {})
    for (const { cost, resolve } of callers) {
      const own = by.decide('consume', key, cost, 0) as Answer // memory answers at once
      resolve(degradedAnswer(why, own, by)) // a call above the store's own capacity is in no booking
    }
  }
}

/**
 * Returns the answer that was asked for, and notes in `lease` what remains of the key, by which the next charge in advance is
 * measured; 0 if the store did not decide, so that nothing is charged in advance.
 */
async function noted(asked: Promise<Answer>, lease: Lease | ColdKey): Promise<Answer> {
  const answer = await asked
  lease.remaining = answer.degraded ? 0 : answer.remaining
  return answer
}
