import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer, Ask, Booking, Correction, Keyspace, MaybePromise, Store } from '../stores/store.js'

/** The state of a key that is exempt: every cost passes now, no charge is counted, and no store is asked but for other corrections. */
export class ExemptKeyspace implements Keyspace {
  /** One without a name that lets everything pass: reading it costs other decisions no check. */
  readonly policies = [{ name: '', capacity: Infinity } as Policy]

  /**
   * Allows every call on a key that an operator has made exempt from limits, and charges nothing. It stands in place of `state`, the
   * limiter's state in the store, in which the key is counted while it is not exempt. `store` gives the time of answers.
   */
  constructor(
    private readonly state: Keyspace,
    private readonly store: Store,
  ) {}

  /** Lets every call of an exempt key pass, without a charge. */
  decide(_ask: Ask): Answer {
    const now = this.store.now()
    const nothing = { reason: undefined, parts: undefined, booking: undefined }
    return { now, at: now, ...nothing, binding: 0, remaining: Infinity, resetAt: now, from: 'none' }
  }

  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    return this.state.confirm(booking)
  }

  cancel(booking: Booking): MaybePromise<boolean> {
    return this.state.cancel(booking)
  }

  correct(change: Correction): MaybePromise<number> {
    return change.kind === 'charge' ? 0 : this.state.correct(change)
  }
}
