import type { PlacedPart, Store } from '../stores/store.js'
import type { HEARS, REPORT_PART, UNREAD } from '../values/contract.js'
import type { Decision } from './decision.js'
import type { PolicySet } from './policy-set.js'

/** A part of a call on several keys, as its limiter opens it. */
export interface LimiterPart extends PlacedPart {
  readonly limiter: {
    readonly name: string
    readonly [UNREAD]: Promise<void> | undefined
    [HEARS](set: PolicySet): boolean
    [REPORT_PART](part: LimiterPart, decision: Decision, together: number, storeMs: number): void
  }
  /** The latest by which it was asked, of a call that waits. */
  set: PolicySet
  /** The set of the call's list without its key's override. */
  readonly given: PolicySet
  /** Limiters of one store and name share the state of a key. */
  readonly store: Store
  readonly callerKey: string
  /** Whether overrides may concern calls of the limiter, or the first read of records does. */
  readonly mayBeOverridden: boolean
  /** The sum, if the caller has named the key twice. */
  cost: number
}
