import type { Policy } from '../algorithms/contract/policy.js'
import { memoryStore } from '../stores/memory/index.js'
import type { GuardedPermitsOptions, GuardSettings } from '../stores/guard-options.js'
import type { Penalty } from '../stores/penalty.js'
import type { ReservationSettings } from '../stores/reservations.js'
import { MOST_TICKETS, type Permits, type TicketStates } from '../stores/permits.js'
import type { Keyspace, Report, Store } from '../stores/store.js'
import { sharedInProcess } from '../values/contract.js'
import { WeakValues } from '../values/weak-values.js'
import { RecoveryQueue } from './booking-until-max-wait.js'
import { Deadline } from './deadline.js'
import { DenialCache } from './denial-cache.js'
import { Health, notAsked } from './failure.js'
import { PeekCache } from './peek-cache.js'
import { ResilientKeyspace } from './resilient-keyspace.js'
import { ResilientTogether } from './resilient-together.js'
import { StoreChannel } from './store-channel.js'

type ResilienceSettings = Pick<GuardSettings, 'onStoreError' | 'deadline'>

/**
 * Wraps `store` for one limiter, so that every decision comes within the deadline: if the store does not answer in time, the
 * limiter's failure mode (`onStoreError`) decides. All limiters of one store share the channel, which sends their calls and stops
 * while the store does not answer, and the caches of denials; the deadline and the failure mode are this limiter's own. `close`
 * leaves `store` open.
 */
export function resilientStore(store: Store, settings: ResilienceSettings): Store {
  const shared = sharedStateOf(store)
  const { channel, recovery, blocks } = shared
  const deadline = new Deadline(settings.deadline, channel)
  let health: Health | undefined
  return {
    /**
     * Opens the state of a limiter in the store, under a list of policies. `local` opens a second state in this process's memory,
     * with the first call that needs it. That decides in an outage, under a share of the limits if the user has given the number
     * of processes. `report` receives notices; `health` reports outages to it, once for all lists of the limiter.
     */
    keyspace(
      name: string,
      policies: readonly Policy[],
      report: Report,
      ...terms: readonly [penalty?: Penalty, reservations?: ReservationSettings]
    ): Keyspace {
      const { mode, share } = settings.onStoreError
      const ownPolicies = (): readonly Policy[] => policies.map((policy) => shareOf(policy, share))
      let opened: Keyspace | undefined
      const local = (): Keyspace => (opened ??= shared.local.keyspace(name, ownPolicies(), report, ...terms))
      const remote = store.keyspace(name, policies, report, ...terms)
      const together = remote.together && new ResilientTogether(remote.together)
      health ??= new Health(report, store.endpoint)
      const cached = remote.reservations ? `${name}\nreserving` : name // a limiter that reserves has a state of its own
      const caches = {
        denials: shared.denialCache(cached, policies),
        peeks: shared.peekCache(cached, policies),
      }
      const all = { remote, together, channel, recovery, deadline, mode, health, ...caches, local, blocks }
      return new ResilientKeyspace(all)
    },
    now: () => store.now(),
    keepsTime: store.keepsTime,
    forgets: store.forgets,
    get closed() {
      return store.closed
    },
    /** Closes what belongs to the limiter, and leaves the store open. */
    close: () => deadline.close(),
  }
}

/**
 * Returns the policy by which one of `processes` processes decides in an outage: its limit and capacity are divided by that
 * number, rounded down, but at least 1. As processes cannot agree in an outage, this keeps them within the limit together.
 */
function shareOf(policy: Policy, processes: number): Policy {
  const part = (units: number): number => Math.max(1, Math.floor(units / processes))
  if (processes === 1) return policy
  return policy.with({ limit: part(policy.limit), capacity: part(policy.capacity) })
}

/** The state that all limiters of this process share if they use one store. */
export class SharedStoreState {
  readonly channel: StoreChannel
  readonly recovery: RecoveryQueue
  readonly blocks = {
    areKept: false,
    keep(): void {
      this.areKept = true
    },
  }
  /** Each is held by its keyspaces. */
  readonly #denialCaches = new WeakValues<DenialCache>()
  readonly #peekCaches = new WeakValues<PeekCache>()
  #local: Store | undefined

  /**
   * Makes what all limiters of this process with `store` share: the `channel`, which sends their calls and stops while the store does
   * not answer, and `recovery`, the queue of bookings that wait until it does.
   */
  constructor(readonly store: Store) {
    this.channel = new StoreChannel(store)
    this.recovery = new RecoveryQueue(this.channel)
  }

  /** The memory store that decides while the store does not. Made in the first outage, and kept for the next. */
  get local(): Store {
    return (this.#local ??= memoryStore({ maxKeys: LOCAL_KEYS, clock: this.#clock() }))
  }

  /**
   * The cache of denials for the state of the limiter `name` under these policies, shared by all limiters of that name and lists
   * of the same shapes (algorithms and windows), as they share the state. Undefined if the store wants no cache.
   */
  denialCache(name: string, policies: readonly Policy[]): DenialCache | undefined {
    const bounds = this.store.denialCache
    if (!bounds) return undefined
    return this.#denialCaches.get(stateOf(name, policies), () => new DenialCache(bounds, this.store))
  }

  /** The cache of peeks for that state. */
  peekCache(name: string, policies: readonly Policy[]): PeekCache {
    return this.#peekCaches.get(stateOf(name, policies), () => new PeekCache(this.store))
  }

  /**
   * Makes the clock of the memory store that decides in outages. It shows the time of the store itself, in microseconds, so that
   * waits agree. The clock of a closed store throws. This one then stands still, as keys in memory may still be swept.
   */
  #clock(): () => number {
    let latest = 0
    return () => {
      try {
        latest = this.store.now()
      } catch {
        // It was closed.
      }
      return latest
    }
  }
}

/** Returns the text under which caches of one state are found: the limiter's name and the shapes of its policies. */
function stateOf(name: string, policies: readonly Policy[]): string {
  return [name, ...policies.map(({ shape }) => shape)].join('\n')
}

/**
 * Returns the state that all limiters of this process with this store share, and makes it for the first of them. Several copies of
 * this package in one process find the same, as two states in memory would together admit twice the limit in an outage.
 */
export function sharedStateOf(store: Store): SharedStoreState {
  const states = sharedInProcess('shared-store-states', () => new WeakMap<Store, SharedStoreState>())
  let state = states.get(store)
  if (!state) states.set(store, (state = new SharedStoreState(store)))
  return state
}

/** At some 200 bytes a key this is 20 MB. */
const LOCAL_KEYS = 100_000

/**
 * Returns the permits of one semaphore in a store elsewhere. Calls go through the channel that all users of the store share. Each
 * has a deadline, which is the semaphore's own: after it, `ask` rejects with STORE_TIMEOUT; it also rejects with CLOSED and with
 * the failure of the store. While the store does not answer it is not asked, and `probe` tests it now and then. `options.held`
 * names the tickets that hold permits of a key.
 */
export function resilientPermits(store: Store, options: GuardedPermitsOptions): Permits {
  const permits = store.permits!(options.name, options.leaseMs)
  const { channel } = sharedStateOf(store)
  const deadline = new Deadline(options.deadlineMs, channel)
  /**
   * Tests whether the store is back, by a call that renews the permits of `key` that this process holds, as many as one call may.
   * So a store that has lost its data has them again before it grants others. If none are held, the call releases no ticket, which
   * changes nothing.
   */
  const probe = (key: string, limit: number): TicketStates => {
    const held = options.held(key).slice(0, MOST_TICKETS)
    return permits.ask(held.length > 0 ? 'renew' : 'release', key, held, limit)
  }
  return {
    /**
     * Takes one step, such as 'take' or 'renew', for some tickets (calls of the semaphore, by number), within the deadline. If the
     * store may not be asked now (`refusal`), tests it if a test is due, and rejects at once.
     */
    async ask(step, key, tickets, limit) {
      const refusal = channel.refusal()
      if (!refusal) return channel.send(() => permits.ask(step, key, tickets, limit), deadline)
      channel.probeIfOpen(() => probe(key, limit), deadline)
      throw notAsked(refusal)
    },
    listen: (granted) => permits.listen(granted),
    /**
     * Ends the messages by which the store announces granted permits. Calls to the store can still be made, as held permits stay
     * held until they are released, but the timer of their deadlines no longer keeps the process alive.
     */
    close() {
      deadline.close()
      permits.close()
    },
  }
}
