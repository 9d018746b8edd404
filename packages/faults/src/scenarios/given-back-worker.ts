import { type Keyspace, type Store, StoreError } from '@sluice/core'
import { type Operation, type Rule, ruleOf, type Shape, Trace } from '@sluice/testing/internal'
import { Decision } from '../../../core/src/limiter/decision.js'
import type { Answer, Booking } from '../../../core/src/stores/store.js'
import type { GivenBackScenario } from './given-back-scenarios.js'
import { UnsteadyStore } from './unsteady-store.js'

/** How often something was given back in the sequences played so far, and where. */
export interface GivenBack {
  inStore: number
  degraded: number
  leased: number
  cancelled: number
}

export const MOST_COST = 1000

interface Charged {
  readonly decision: Decision
  readonly cost: number
  readonly answer: Answer
  readonly traces: readonly Trace[]
}

let keys = 0

/** One process, its limiter's stores around the store, and what it was let through. */
export class Worker {
  readonly #seen: GivenBack
  readonly #unsteady: UnsteadyStore
  readonly #stack: Store
  readonly #keyspace: Keyspace
  readonly #key = `given-back-${++keys}`
  readonly #charges: Charged[] = []
  readonly #places: { readonly place: Charged; readonly booking: Booking }[] = []
  /** Of the store, and of what stood in for it. */
  readonly #traces: Readonly<Record<'store' | 'local', readonly Trace[]>>

  constructor(store: Store, scenario: GivenBackScenario, seen: GivenBack) {
    const { shapes, numbers, leaseTtl, outage } = scenario
    this.#seen = seen
    this.#unsteady = new UnsteadyStore(store)
    const isElsewhere = leaseTtl !== undefined || outage !== undefined
    const near: Store = isElsewhere ? this.#unsteady : store
    const leases = leaseTtl === undefined ? undefined : { ttl: leaseTtl, size: 10, maxKeys: 10_000 }
    const onStoreError = { mode: 'local', share: 1 } as const
    this.#stack = near.guard?.store(near, { deadline: 60_000, onStoreError, leases }) ?? near
    const policies = shapes.map(({ factory }, i) => factory(numbers[i]!))
    this.#keyspace = this.#stack.keyspace(`row 29 ${process.pid}`, policies, () => {})
    const open = () => shapes.map((shape, i) => new Trace(promiseOf(shape, ruleOf(shape.model, numbers[i]!))))
    this.#traces = { store: open(), local: open() }

    function promiseOf({ model }: Shape, rule: Rule): Rule {
      const bound = (leaseTtl !== undefined && model.leasedBound) || model.bound
      return { ...rule, model: { ...model, bound } }
    }
  }

  /** The policies of the key. */
  get policies() {
    return this.#keyspace.policies
  }

  set isDown(isDown: boolean) {
    this.#unsteady.isDown = isDown
  }

  /** The answer to a call of 1 that charges nothing, with what was booked and charged so far, as the next step is drawn from it. */
  async look() {
    const answer = await this.#keyspace.decide('peek', this.#key, 1, 0)
    return { ...answer, bookings: this.#places.length, charges: this.#charges.map(({ cost }) => cost) }
  }

  /** Takes all units that remain. `now` is in microseconds. */
  async takeAll(now: number): Promise<void> {
    const { remaining } = await this.look()
    const cost = Math.min(remaining, MOST_COST)
    await this.#call('consume', now, cost, 0)
  }

  /** Carries out one step of a sequence. */
  async perform({ kind, now, cost, maxWait, booking, charge }: Operation): Promise<void> {
    if (kind === 'release') return this.#settle(this.#charges[charge], cost)
    if (kind === 'cancel') return this.#cancel(booking)
    if (kind === 'consume') return this.#call(kind, now, cost, 0)
    if (kind === 'book') return this.#call(kind, now, cost, maxWait)
  }

  /** Makes a call, and notes its charge in the traces of what decided: the store, or the failure mode in an outage. */
  async #call(ask: 'consume' | 'book', now: number, cost: number, maxWait: number): Promise<void> {
    if (cost === 0) return
    const answer = await this.#keyspace.decide(ask, this.#key, cost, maxWait)
    if (answer.reason !== undefined || answer.degraded?.allowed === false) return
    const source = {
      limiter: 'row',
      policies: this.policies,
      enforce: true,
      keyspace: this.#keyspace,
      rule: 'default' as const,
    }
    const decision = new Decision(source, answer, this.#key, cost)
    const traces = this.#traces[answer.degraded ? 'local' : 'store']
    const charged = { decision, cost, answer, traces }
    this.#charges.push(charged)
    for (const trace of traces) trace.admitted(BigInt(Math.max(now, answer.at)), BigInt(cost), charged)
    if (answer.booking) this.#places.push({ place: charged, booking: answer.booking })
  }

  /** Checks in all traces that no more was admitted than promised, and closes the store. */
  async end(): Promise<void> {
    for (const trace of [...this.#traces.store, ...this.#traces.local]) trace.check()
    await this.#stack.close()
  }

  /** Gives units of a charge back by settling its decision at less, and notes how many took effect. */
  async #settle(charged: Charged | undefined, units: number): Promise<void> {
    if (!charged) return
    this.#forget(charged)
    const { decision, cost, answer, traces } = charged
    const given = await unlessOutOfReach(decision.settle(cost - Math.min(units, cost)))
    if (given === undefined) return
    if (answer.degraded) this.#seen.degraded++
    else if (answer.chargedAt === undefined) this.#seen.inStore++
    else this.#seen.leased++
    // Of several policies the one that gave least is reported: the others keep what the caller says that it used.
    const back = traces.length === 1 ? -given : Math.min(units, cost)
    for (const trace of traces) trace.released(charged, back)
  }

  /** Cancels a booking, by its index, unless its units were given back before. */
  async #cancel(index: number): Promise<void> {
    const [taken] = index < 0 ? [] : this.#places.splice(index, 1)
    if (!taken) return
    const { place, booking } = taken
    if (!this.#charges.includes(place)) return // its units were given back before
    this.#forget(place)
    const keyspace = place.answer.degraded?.by ?? this.#keyspace
    const undone = await unlessOutOfReach(Promise.resolve(keyspace.cancel(booking)))
    if (undone === undefined) return
    this.#seen.cancelled++
    for (const trace of place.traces) trace.left(place)
  }

  /** Removes a charge from those that can still be given back. */
  #forget(charged: Charged): void {
    this.#charges.splice(this.#charges.indexOf(charged), 1)
  }
}

/** The result of a give-back; undefined if the store cannot be reached, where the units stay charged. */
async function unlessOutOfReach<T>(act: Promise<T>): Promise<T | undefined> {
  try {
    return await act
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}
