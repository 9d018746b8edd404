import { type Duration, parseDuration } from '../values/duration.js'
import { PolicyError } from '../values/errors.js'
import type { Policy } from '../algorithms/contract/policy.js'
import type { Keyspace, Report, Store } from '../stores/store.js'
import { type Backing, backingOf } from './backing.js'
import { Deadline } from './deadline.js'
import { type FailureMode, type ParsedFailureMode, parseFailureMode } from './failure-mode.js'
import { GuardedKeyspace } from './guarded-keyspace.js'
import { Health } from './health.js'

export interface GuardOptions {
  /** What a call gets when the store cannot decide; default 'local'. A memory store always decides. */
  readonly onStoreError?: FailureMode
  /**
   * The longest the store may take to answer, 1 ms to 1 minute; default 50 ms. `acquire` goes on waiting for it up to
   * `maxWait` under 'throw' and 'deny', where nothing else decides.
   */
  readonly deadline?: Duration
}

/**
 * The store as one limiter uses it: a store of this process as it is, any other so that every decision comes within
 * the deadline.
 * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION.
 */
export function guarded(store: Store, { onStoreError, deadline = '50ms' }: GuardOptions): Store {
  const failureMode = parseFailureMode(onStoreError)
  const deadlineMs = parseDuration(deadline, 'deadline', { most: 60_000, error: PolicyError })
  return store.local ? store : new GuardedStore(store, failureMode, deadlineMs)
}

class GuardedStore implements Store {
  readonly #store: Store
  readonly #backing: Backing
  readonly #failureMode: ParsedFailureMode
  readonly #deadline: Deadline
  #health: Health | undefined

  constructor(store: Store, failureMode: ParsedFailureMode, deadlineMs: number) {
    this.#store = store
    this.#backing = backingOf(store)
    this.#failureMode = failureMode
    this.#deadline = new Deadline(deadlineMs, this.#backing.line)
  }

  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    const { mode, share } = this.#failureMode
    let local: Keyspace | undefined
    const openLocal = (): Keyspace => {
      const own = policies.map((policy) => sharedBy(share, policy))
      return this.#backing.local.keyspace(name, own, report)
    }
    return new GuardedKeyspace({
      remote: this.#store.keyspace(name, policies, report),
      line: this.#backing.line,
      deadline: this.#deadline,
      mode,
      health: (this.#health ??= new Health(report)),
      denials: this.#backing.denials(name, policies),
      local: () => (local ??= openLocal()),
    })
  }

  now(): number {
    return this.#store.now()
  }

  /** Ends what belongs to the limiter. The store is its maker's. */
  close(): void {
    this.#deadline.close()
  }
}

/** The policy under the part of its limit that one of `processes` processes may use: rounded down, at least 1. */
function sharedBy(processes: number, policy: Policy): Policy {
  const part = (units: number): number => Math.max(1, Math.floor(units / processes))
  return processes === 1
    ? policy
    : policy.with({ limit: part(policy.limit), capacity: part(policy.capacity) })
}
