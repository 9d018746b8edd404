import type { Keyspace, Store } from '@sluice/core'
import type { OpenStore } from '@sluice/testing/internal'
import { SlowStore, Timeline } from '@sluice/harness/stores'
import { bookedBy } from './booked-by.js'
import { JudgedStore } from './judged-store.js'
import { type LeasedScenario, PROCESSES } from './leased-scenarios.js'

/** One call that was let through. Instants in microseconds of the simulated time. */
export interface Served {
  readonly process: number
  readonly cost: number
  /** The instant of its answer. */
  readonly at: number
  /** When the store decided, where it decided for this call or for a booking that this call waited for. */
  readonly decidedAt: number
}

/** Units that a process got from the store in one call. */
export interface Booked {
  readonly process: number
  readonly cost: number
  readonly at: number
}

interface Process {
  /** Its way to the store. */
  readonly way: SlowStore
  /** The store as its limiter uses it, and what that opened for each set of numbers. */
  readonly store: Store
  readonly keyspaces: readonly Keyspace[]
}

/** Processes with leases that share a store, in a simulated time. */
export class LeasedFleet {
  readonly timeline = new Timeline()
  readonly served: Served[] = []
  readonly booked: Booked[] = []
  denied = 0
  fromMemory = 0
  /** The answers that differ from the model's, or that were denied though the store would have let it pass. */
  wrong: string | undefined
  readonly #scenario: LeasedScenario
  #store!: JudgedStore
  #processes!: readonly Process[]

  private constructor(scenario: LeasedScenario) {
    this.#scenario = scenario
  }

  /** Opens the store and the simulated processes of a fleet. The delays of the network, in microseconds, are taken in turn. */
  static async open(openStore: OpenStore, scenario: LeasedScenario, name: string, delays: readonly number[]) {
    const fleet = new LeasedFleet(scenario)
    const { shapes, tiers, leases } = scenario
    const rules = tiers.map((tier) => shapes.map((shape, i) => bookedBy(shape, tier[i]!, leases.ttl)!))
    fleet.#store = new JudgedStore(await openStore(fleet.timeline.now), fleet.timeline.now, rules)
    let turn = 0
    const delay = () => delays[turn++ % delays.length]!
    fleet.#processes = Array.from({ length: PROCESSES }, (_, process) => fleet.#start(process, name, delay))
    return fleet
  }

  /** Makes a call as one process of the fleet. Returns whether it was let through. */
  async consume(process: number, tier: number, cost: number): Promise<boolean> {
    const { way, keyspaces } = this.#processes[process]!
    const asked = keyspaces[tier]!.decide('consume', 'k', cost, 0)
    const answer = await asked
    const at = this.timeline.now()
    const decided = way.answers.get(answer)
    if (answer.reason === undefined) {
      if (asked === answer) this.fromMemory++
      this.served.push({ process, cost, at, decidedAt: answer.from === 'lease' ? at : answer.now })
      return true
    }
    this.denied++
    if (decided === undefined ? cost <= this.#store.roomIn(tier) : decided !== cost)
      this.wrong ??= `a cost of ${cost} was denied that the store had not denied`
    return false
  }

  /** Lets a process ask for a key without a charge. */
  async peek(process: number, tier: number): Promise<void> {
    await this.#processes[process]!.keyspaces[tier]!.decide('peek', 'k', 1, 0)
  }

  /** Lets the simulated time run until nothing is left to happen, and closes the stores. */
  async end(): Promise<void> {
    await this.timeline.run()
    for (const { store } of this.#processes) await store.close()
    await this.#store.close()
    this.wrong ??= this.#store.wrong
  }

  /** Starts a simulated process: a store with leases, to which calls and answers travel with delays. */
  #start(process: number, name: string, delay: () => number): Process {
    const { shapes, tiers, leases } = this.#scenario
    const seen = this.#store.as(({ now }, cost) => void this.booked.push({ process, cost, at: now }))
    const way = new SlowStore(seen, this.timeline, delay)
    const store = way.guard.store(way, {
      deadline: 60_000,
      onStoreError: { mode: 'throw', share: 1 },
      leases: { ...leases, maxKeys: 10_000 },
    })
    const keyspaces = tiers.map((tier) => {
      const policies = shapes.map(({ factory }, i) => factory(tier[i]!))
      return store.keyspace(name, policies, () => {})
    })
    return { way, store, keyspaces }
  }
}
