import type { PlacedPart, Store } from '../stores/store.js'
import type { REPORT_PART } from '../values/contract.js'
import type { Decision } from './decision.js'
import type { PolicySet } from './policy-set.js'

/** A part of a call on several keys, as its limiter opens it. */
export interface LimiterPart extends PlacedPart {
  readonly limiter: {
    readonly name: string
    [REPORT_PART](part: LimiterPart, decision: Decision, together: number, storeMs: number): void
  }
  readonly set: PolicySet
  /** Limiters of one store and name share the state of a key. */
  readonly store: Store
  readonly callerKey: string
  /** Whether the limiter has listeners of decisions. */
  readonly isHeard: boolean
  /** The sum, if the caller has named the key twice. */
  cost: number
}
