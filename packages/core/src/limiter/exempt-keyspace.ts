import type { Policy } from '../algorithms/contract/policy.js'
import type { Answer, Ask, Booking, Correction, Keyspace, MaybePromise, Store } from '../stores/store.js'

/** The state of a key that is exempt: every cost passes now, no charge is counted, and no store is asked but for other corrections. */
export class ExemptKeyspace implements Keyspace {
  /** One without a name that lets everything pass: reading it costs other decisions no check. */
  readonly policies = [{ name: '', capacity: Infinity } as Policy]

  /** Stands in place of `state`, in which the key is counted while it is not exempt. `store` has the clock. */
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
