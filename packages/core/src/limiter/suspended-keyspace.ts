import type { Policy } from '../algorithms/contract/policy.js'
import { isAboutKey } from '../stores/store.js'
import type { Answer, Ask, Correction, Keyspace, MaybePromise, Store } from '../stores/store.js'

/**
 * The state of a limiter under a list with a limit of 0: every cost above 0 is denied for ever, and a cost of 0 reads that
 * nothing is left. The store is not asked, and a charge, a refund or a release takes no effect. A block, a hold and a reset
 * concern the key, whose state the list shares with all lists of its shapes, so the store carries them out.
 */
export class SuspendedKeyspace implements Keyspace {
  #state: Keyspace | undefined

  /**
   * Denies every cost under `policies`, of which one has a limit of 0, which needs no state in `store`. `open` opens a state there
   * under a list of policies. It is called only when one is needed after all: for blocks, holds and resets, and for what was reserved
   * under another limit.
   */
  constructor(
    readonly policies: readonly Policy[],
    private readonly store: Store,
    private readonly open: (policies: readonly Policy[]) => Keyspace,
  ) {}

  /**
   * Denies every call with a cost for ever (`at` is Infinity), and lets a cost of 0 read that nothing is left. No store is asked.
   * The binding policy is the first with a limit of 0. `parts` has three numbers a policy, if there are several: the earliest
   * instant, the units that remain, and when they are full again.
   */
  decide(_ask: Ask, _key: string, cost: number): Answer {
    const now = this.store.now()
    const at = cost > 0 ? Infinity : now
    const reason = cost > 0 ? 'limit' : undefined
    const binding = this.policies.findIndex(({ limit }) => limit === 0)
    const all = this.policies.flatMap(({ limit }) => [limit === 0 ? at : now, 0, now])
    const parts = this.policies.length > 1 ? all : undefined
    const state = { remaining: 0, resetAt: now, parts, used: [], booking: undefined }
    return { now, at, reason, binding, ...state, from: 'none' }
  }

  /** Nothing is ever booked under a limit of 0, so every booking counts as lost. */
  confirm(): 'lost' {
    return 'lost'
  }

  /** Nothing is ever booked under a limit of 0, so there is nothing to give back. */
  cancel(): boolean {
    return false
  }

  /**
   * Applies a change of the whole key (a block, hold or reset) to the state in the store. Changes of units (a charge, refund or
   * release) take no effect, as nothing is charged under a limit of 0: the result is 0.
   */
  correct(change: Correction): MaybePromise<number> {
    return isAboutKey(change) ? this.state.correct(change) : 0
  }

  /**
   * The state in the store, opened with the first use. No store gets a limit of 0; but lists of the same algorithms and windows share
   * their state whatever their limits, so it is opened with another limit in place of 0.
   */
  get state(): Keyspace {
    return (this.#state ??= this.open(this.policies.map(withAnyLimit)))
  }
}

/**
 * Returns the policy, or one of its shape in place of a policy with a limit of 0. The limit of that is large, because a store keeps
 * keys until they are full under the smallest limit that it has met.
 */
function withAnyLimit(policy: Policy): Policy {
  return policy.limit === 0 ? policy.with({ limit: 10_000 }) : policy
}
