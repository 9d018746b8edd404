import { memoryStore, type MemoryStore } from '@sluice/core'
import { type PermitCall, type PermitHolder, PermitQueues } from '@sluice/core/internal'
import type {
  Answer,
  Ask,
  Clock,
  Correction,
  DatedCharge,
  Keyspace,
  Notice,
  Report,
  TicketState,
} from '@sluice/core/store'
import { KeptBookings } from './kept-bookings.js'
import type { PolicyListing } from './policy-listing.js'

export interface HostOptions {
  readonly maxKeys?: number
  readonly maxShapes?: number
  readonly clock?: Clock | undefined
}

/** The state of a machine, in the process that serves: an ordinary memory store, whose clock decides, and the permits. */
export class Host {
  /** Never 0. */
  readonly life = 1 + Math.floor(Math.random() * 2 ** 48)
  readonly #bookings = new KeptBookings()
  readonly #store: MemoryStore
  readonly #permits = new PermitQueues(() => this.now())
  readonly #reports = new Map<string, Report>()
  #holders = 0
  /** The process whose call is carried out: it alone is told what the call caused. */
  #caller: HostCaller | undefined

  constructor({ maxKeys, maxShapes, clock }: HostOptions) {
    this.#store = memoryStore({
      ...(maxKeys !== undefined && { maxKeys }),
      ...(maxShapes !== undefined && { maxShapes }),
      ...(clock && { clock }),
    })
  }

  now(): number {
    return this.#store.now()
  }

  /** A number for a process that comes. */
  newHolder(): number {
    return ++this.#holders
  }

  open({ name, policies, penalty }: PolicyListing, caller: HostCaller): Keyspace {
    let report = this.#reports.get(name)
    if (!report) this.#reports.set(name, (report = (notice) => this.#caller?.notice(name, notice)))
    const opened = report
    return this.#for(caller, () => this.#store.keyspace(name, policies, opened, penalty))
  }

  /** Memory answers without the `nextUnitAt` of a denial, which only callers in other processes need. */
  decide(
    caller: HostCaller,
    keyspace: Keyspace,
    ask: Ask,
    key: string,
    cost: number,
    maxWait: number,
  ): Answer {
    this.#caller = caller
    const answer = keyspace.decide(ask, key, cost, maxWait) as Answer // memory answers at once
    this.#caller = undefined
    if (answer.reason === undefined) return answer
    const { at } = keyspace.decide('peek', key, answer.remaining + 1, 0) as Answer
    return { ...answer, nextUnitAt: at }
  }

  /** Keeps the booking of an answer, and returns its number; 0 if there is none. */
  keep({ booking, now }: Answer): number {
    return booking ? this.#bookings.keep(booking, now) : 0
  }

  confirm(keyspace: Keyspace, number: number): 'stands' | 'lost' | 'held' {
    const booking = this.#bookings.get(number)
    return booking ? (keyspace.confirm(booking) as 'stands' | 'lost' | 'held') : 'lost'
  }

  /** The units of a booking that is forgotten are released. */
  cancel(caller: HostCaller, keyspace: Keyspace, number: number, key: string, charge: DatedCharge): boolean {
    const booking = this.#bookings.get(number)
    this.#bookings.forget(number)
    if (booking) return this.#for(caller, () => keyspace.cancel(booking) as boolean)
    this.correct(caller, keyspace, { kind: 'release', key, charge, units: charge.cost })
    return false
  }

  correct(caller: HostCaller, keyspace: Keyspace, change: Correction): number {
    return this.#for(caller, () => keyspace.correct(change) as number)
  }

  permits(holder: PermitHolder, call: PermitCall): readonly TicketState[] {
    return this.#permits.carryOut(holder, call)
  }

  /** A process that knew a server of a former life has come. */
  stateWasLost(): void {
    this.#permits.stateWasLost()
  }

  left(holder: PermitHolder): void {
    this.#permits.leave(holder)
  }

  close(): void {
    void this.#store.close()
  }

  #for<T>(caller: HostCaller, act: () => T): T {
    this.#caller = caller
    try {
      return act()
    } finally {
      this.#caller = undefined
    }
  }
}

/** A process whose calls are carried out. */
export interface HostCaller {
  notice(name: string, notice: Notice): void
}
