import type { Policy } from '../algorithms/contract/policy.js'
import type { Penalty } from '../stores/penalty.js'
import type { Keyspace, Report, Store } from '../stores/store.js'
import type { Duration } from '../values/duration.js'
import { type DeclarationOf, duration, type Settings } from '../values/options.js'
import { Deadline } from './deadline.js'
import { type FailureMode, onStoreError } from './failure.js'
import { Health } from './health.js'
import { ResilientKeyspace } from './resilient-keyspace.js'
import { type SharedStoreState, sharedStateOf } from './shared-store-state.js'

export interface ResilienceOptions {
  /**
   * The answer to a call when the store cannot decide. A memory store always decides.
   * @default 'local'
   */
  readonly onStoreError?: FailureMode
  /**
   * The longest the store may take to answer, 1 ms to 1 minute. Under 'throw' and 'deny', where nothing else decides,
   * `acquire` waits for the answer up to `maxWait`. A number is in milliseconds.
   * @default '50ms'
   */
  readonly deadline?: Duration
}

/** The longest that a store may take to answer. */
export const deadline = duration('1ms', '1m', '50ms')

/** Options of what calls get from a store that may fail. */
export const RESILIENCE = { onStoreError, deadline } satisfies DeclarationOf<ResilienceOptions>

/**
 * The store as one limiter uses it. A store of this process is used as it is; any other is guarded, so that every decision
 * comes within the deadline.
 */
export function resilientStore(store: Store, settings: Settings<typeof RESILIENCE>): Store {
  return store.local ? store : new ResilientStore(store, settings)
}

class ResilientStore implements Store {
  readonly #shared: SharedStoreState
  readonly #deadline: Deadline
  #health: Health | undefined

  constructor(
    readonly store: Store,
    readonly settings: Settings<typeof RESILIENCE>,
  ) {
    this.#shared = sharedStateOf(store)
    this.#deadline = new Deadline(settings.deadline, this.#shared.channel)
  }

  keyspace(name: string, policies: readonly Policy[], report: Report, penalty?: Penalty): Keyspace {
    const { mode, share } = this.settings.onStoreError
    let local: Keyspace | undefined
    const openLocal = (): Keyspace => {
      const own = policies.map((policy) => shareOf(policy, share))
      return this.#shared.local.keyspace(name, own, report, penalty)
    }
    return new ResilientKeyspace({
      remote: this.store.keyspace(name, policies, report, penalty),
      channel: this.#shared.channel,
      recovery: this.#shared.recovery,
      deadline: this.#deadline,
      mode,
      health: (this.#health ??= new Health(report, this.store.endpoint)),
      denials: this.#shared.denialCache(name, policies),
      local: () => (local ??= openLocal()),
    })
  }

  now(): number {
    return this.store.now()
  }

  get closed(): AbortSignal | undefined {
    return this.store.closed
  }

  /** Closes what belongs to the limiter, and leaves the store open. */
  close(): void {
    this.#deadline.close()
  }
}

/** The policy with one process's share of its limit and capacity, rounded down and at least 1. */
function shareOf(policy: Policy, processes: number): Policy {
  const part = (units: number): number => Math.max(1, Math.floor(units / processes))
  return processes === 1
    ? policy
    : policy.with({ limit: part(policy.limit), capacity: part(policy.capacity) })
}
