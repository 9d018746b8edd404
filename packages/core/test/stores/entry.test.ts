import { createLimiter, gcra } from '@sluice/core'
import * as allAlgorithms from '../../src/algorithms/index.js'
import {
  type Algorithm,
  algorithms,
  type Answer,
  type Ask,
  type Booking,
  type Caller,
  type Charge,
  type Correction,
  type DatedCharge,
  type Degraded,
  type DenialCacheBounds,
  guard,
  isDenied,
  type Keyspace,
  type MaybePromise,
  type Notice,
  type Permits,
  type PermitStep,
  type Policy,
  type Report,
  type Reason,
  State,
  type Store,
  StoreError,
  type TicketStates,
  type View,
} from '@sluice/core/store'

/*
 * A store for one policy, written with nothing but what `@sluice/core/store` exports: that it compiles shows that the entry
 * point has every type of the contract.
 */
class OnePolicyStore implements Store {
  readonly denialCache: DenialCacheBounds = { maxAge: 1_000_000, maxKeys: 10 }
  readonly guard = guard
  readonly notices: Notice[] = []
  isOpen = true

  keyspace(_name: string, policies: readonly Policy[], report: Report): Keyspace {
    return new OnePolicyKeyspace(policies[0]!, () => this.now(), report)
  }

  permits(): Permits {
    const none = (_step: PermitStep, _key: string, tickets: readonly number[]): TicketStates =>
      tickets.map(() => 'unknown')
    return { ask: none, listen() {}, close() {} }
  }

  now(): number {
    if (!this.isOpen) throw new StoreError('CLOSED', 'the store is closed')
    return 1_000_000
  }

  close(): MaybePromise<void> {
    this.isOpen = false
  }
}

class OnePolicyKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly #policy: Policy
  readonly #algorithm: Algorithm
  readonly #states = new Map<string, State>()

  constructor(
    policy: Policy,
    readonly now: () => number,
    readonly report: Report,
  ) {
    this.policies = [policy]
    this.#policy = policy
    this.#algorithm = policy.algorithm
  }

  async decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): Promise<Answer> {
    caller?.queued?.(false)
    const now = this.now()
    const state = this.#stateOf(key)
    const at = cost > 0 ? this.#algorithm.earliest(state, this.#policy, now, cost) : now
    const reason: Reason | undefined = at === Infinity ? 'cost' : at > now + maxWait ? 'limit' : undefined
    if (reason === undefined && ask !== 'peek') this.#algorithm.admit(state, this.#policy, at, cost)
    const view: View = { remaining: 0, resetAt: 0 }
    this.#algorithm.view(state, this.#policy, now, view)
    const charge: DatedCharge = { at, cost, decidedAt: now }
    const booking: Booking | undefined = at > now && reason === undefined ? { key, ...charge } : undefined
    return { now, at, reason, binding: 0, ...view, parts: undefined, booking }
  }

  async confirm(): Promise<'stands'> {
    return 'stands'
  }

  async cancel(booking: Booking): Promise<boolean> {
    await this.correct({ kind: 'release', key: booking.key, charge: booking, units: booking.cost })
    return false
  }

  async correct(change: Correction): Promise<number> {
    const state = this.#stateOf(change.key)
    if (change.kind === 'reset') this.#states.delete(change.key)
    if (change.kind === 'charge') return this.#algorithm.admit(state, this.#policy, this.now(), change.cost)
    if (change.kind !== 'release') return 0
    const charge: Charge = change.charge
    return this.#algorithm.release(state, this.#policy, this.now(), charge, change.units)
  }

  #stateOf(key: string): State {
    const held = this.#states.get(key)
    const state = held ?? new State(new Float64Array(this.#algorithm.cells(this.#policy)))
    if (!held) this.#states.set(key, state)
    return state
  }
}

it('has all that a store of a user needs, and such a store limits', async () => {
  const store = new OnePolicyStore()
  const limiter = createLimiter({ name: 'own', policies: [gcra({ limit: 2, window: '1m' })], store })
  const first = await limiter.consume('a')
  const rest = [await limiter.consume('a'), await limiter.consume('a'), await limiter.consume('b')]
  expect([first, ...rest].map(({ allowed }) => allowed)).toEqual([true, true, false, true])
  expect(await first.settle(0)).toBe(-1)
  await limiter.close()
})

it('tells denied answers from allowed ones, also where the store did not decide', async () => {
  const keyspace = new OnePolicyStore().keyspace('own', [gcra({ limit: 1, window: '1m' })], () => {})
  const answer = await keyspace.decide('peek', 'a', 1, 0)
  const degraded: Degraded = { why: 'error', allowed: false, by: undefined }
  expect([isDenied(answer), isDenied({ ...answer, degraded })]).toEqual([false, true])
})

it('lists every algorithm, for what reads algorithms by their names', () => {
  expect(algorithms).toEqual({ ...allAlgorithms })
})
