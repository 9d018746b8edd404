import type { Policy } from '@sluice/core'
import type {
  Answer,
  Ask,
  Booking,
  Caller,
  Correction,
  Keyspace,
  MaybePromise,
  Penalty,
  Report,
} from '@sluice/core/store'
import type { MachineBooking } from './machine-server.js'
import type { Membership } from './membership.js'
import { PolicyListing } from './policy-listing.js'

/** The state of one limiter under one list of policies, with the server of the machine. */
export class MachineKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly #list: PolicyListing
  readonly #membership: Membership

  constructor(
    name: string,
    policies: readonly Policy[],
    penalty: Penalty | undefined,
    /** Held, so that it lives as long as this keyspace. */
    readonly report: Report,
    membership: Membership,
  ) {
    this.policies = policies
    this.penalty = penalty
    this.#list = new PolicyListing(name, policies, penalty)
    this.#membership = membership
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    return this.#membership.ask(
      (server) => server.decide(this.#list, ask, key, cost, maxWait, caller),
      caller,
    )
  }

  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    const booked = booking as MachineBooking
    return this.#membership.ask((server) =>
      booked.life === server.life ? server.confirm(this.#list, booked) : 'lost',
    )
  }

  cancel(booking: Booking): MaybePromise<boolean> {
    const booked = booking as MachineBooking
    if (booked.isCancelled) return false
    booked.isCancelled = true
    return this.#membership.ask((server) =>
      booked.life === server.life ? server.cancel(this.#list, booked) : false,
    )
  }

  /** Units that an earlier server charged are gone with its state. */
  correct(change: Correction): MaybePromise<number> {
    return this.#membership.ask((server) =>
      change.kind === 'release' && this.#membership.isFormer(change.charge.decidedAt)
        ? 0
        : server.correct(this.#list, change),
    )
  }
}
