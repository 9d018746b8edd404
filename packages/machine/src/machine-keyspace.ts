import type { Policy } from '@sluice/core'
import type {
  Answer,
  Ask,
  Booking,
  Caller,
  Correction,
  Keyspace,
  MaybePromise,
  Notice,
  Part,
  Penalty,
  Permits,
  PermitStep,
  Report,
  Reservations,
  TicketStates,
  Together,
} from '@sluice/core/store'
import type { MachineBooking } from './machine-server.js'
import type { ServerAccess } from './server-access.js'
import type { WirePolicies } from './wire-policies.js'

/** The state of one limiter under one list of policies, with the server of the machine. */
export class MachineKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly #access: ServerAccess

  /**
   * The keyspace of a limiter, whose calls go to the server of the machine. `list` holds the limiter's name, policies and penalty
   * in the form in which they are sent there. `together` decides calls on several keys, and has the access to the server.
   */
  constructor(
    readonly list: WirePolicies,
    /** The store passes notices to it but holds it only weakly. It is held here so that it lives as long as this keyspace. */
    readonly report: Report,
    readonly together: MachineTogether,
  ) {
    this.policies = list.policies
    this.penalty = list.penalty
    this.#access = together.access
  }

  /**
   * What makes reservations (charges that are settled later) on the server, and settles or extends them; undefined for a limiter that
   * does not reserve (its list has no `max`, the most open ones of a key).
   */
  get reservations(): Reservations | undefined {
    if (this.list.max === undefined) return undefined
    return {
      reserve: (call, caller) =>
        this.#access.ask((server) => server.reserve(this.list, call, caller), caller),
      change: (change, caller) =>
        this.#access.ask((server) => server.change(this.list, change, caller), caller),
    }
  }

  /** Whether calls are answered without a promise: this process is the server. */
  get answersAtOnce(): boolean {
    return this.#access.local !== undefined
  }

  /**
   * Decides a call of this cost on a key; `ask` says whether it consumes, peeks or books, and `maxWait` is in microseconds.
   * Returns the answer at once if this process is the server; otherwise a promise of what the server answers. `caller` is the
   * call's own record of whether it was sent and still wants the answer.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    const call = { ask, key, cost, maxWait, caller }
    const { local } = this.#access
    if (local) return local.decide(this.list, call)
    return this.#access.ask((server) => server.decide(this.list, call), caller)
  }

  /**
   * Whether a booking (units charged for a later instant) stands, is lost, or is held: its key is blocked or paused, so that its
   * turn does not come yet. A booking that was made at a former server, known by its `epoch`, was lost with that server's state.
   */
  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    const booked = booking as MachineBooking
    return this.#access.ask((server) =>
      booked.epoch === server.epoch ? server.confirm(this.list, booked) : 'lost',
    )
  }

  /**
   * Cancels a booking, once. Resolves with whether it is undone as if it had never been made; with false also if it was cancelled
   * before, or if the server at which it was made (known by its `epoch`) has ended, and its state with it.
   */
  cancel(booking: Booking): MaybePromise<boolean> {
    const booked = booking as MachineBooking
    if (booked.isCancelled) return false
    booked.isCancelled = true
    return this.#access.ask((server) =>
      booked.epoch === server.epoch ? server.cancel(this.list, booked) : false,
    )
  }

  /**
   * Has the server make a correction, such as a refund or a release, and returns the units that took effect. A release of units
   * that were charged at a former server (known by its `epoch`) returns 0 and does nothing: those units are gone with the former
   * server's state, and the units that count now are of other calls.
   */
  correct(correction: Correction, caller?: Caller): MaybePromise<number> {
    return this.#access.ask((server) => {
      const isOfFormer = correction.kind === 'release' && correction.charge.epoch !== server.epoch
      return isOfFormer ? 0 : server.correct(this.list, correction, caller)
    }, caller)
  }
}

/** Decides the parts of a call on several keys in the server of the machine. */
export class MachineTogether implements Together {
  readonly program = this

  constructor(readonly access: ServerAccess) {}

  /**
   * Decides a call on several keys in one step of the server, and returns an answer for each part. A part is one key with its
   * cost; `enforce` says whether its denial denies the whole call. A keyspace is an object of this process, so in its place the
   * server gets the part's list of policies. `_receiver`, to which other stores may pass the answers, is never called.
   */
  decide(parts: readonly Part[], _receiver: unknown, caller?: Caller): MaybePromise<readonly Answer[]> {
    const sent = parts.map(({ keyspace, key, cost, enforce }) => {
      return { list: (keyspace as MachineKeyspace).list, key, cost, enforce }
    })
    return this.access.ask((server) => server.together(sent, caller), caller)
  }
}

/** The callbacks of the limiters of this process by name, each for as long as a keyspace or its limiter holds it. */
export class Reports {
  readonly #byName = new Map<string, Set<WeakRef<Report>>>()
  readonly #collected = new FinalizationRegistry<Reference>((reference) => this.#remove(reference))

  /**
   * Passes notices about limiters of this name to `report` as long as it lives: it is held weakly, and removed when it was
   * garbage-collected. Adding it twice changes nothing.
   */
  add(name: string, report: Report): void {
    const refs = this.#byName.get(name) ?? new Set()
    for (const ref of refs) if (ref.deref() === report) return
    const ref = new WeakRef(report)
    this.#byName.set(name, refs.add(ref))
    this.#collected.register(report, { name, ref })
  }

  /** Calls the reports of all limiters of this name that still exist in this process. */
  pass(name: string, notice: Notice): void {
    for (const ref of this.#byName.get(name) ?? []) ref.deref()?.(notice)
  }

  /** Forgets a report after its limiter was garbage-collected, and the name with its last report. */
  #remove({ name, ref }: Reference): void {
    const refs = this.#byName.get(name)
    refs?.delete(ref)
    if (refs?.size === 0) this.#byName.delete(name)
  }
}

interface Reference {
  readonly name: string
  readonly ref: WeakRef<Report>
}

export interface MachinePermitsOptions {
  /** Of this semaphore in its process. */
  readonly number: number
  readonly name: string
  readonly leaseMs: number
  readonly access: ServerAccess
  readonly onClose: () => void
}

/** The permits of one semaphore of this process, with the server of the machine. */
export class MachinePermits implements Permits {
  #granted: ((ticket: number) => void) | undefined

  constructor(private readonly options: MachinePermitsOptions) {}

  /**
   * Takes one step (take, wait, poll, renew or release) for some tickets of the semaphore; a ticket is the number of a call that
   * has a permit or waits for one. Returns their new states. `limit` is the most permits of the key.
   */
  ask(step: PermitStep, key: string, tickets: readonly number[], limit: number): TicketStates {
    const { number: semaphore, name, leaseMs, access } = this.options
    const call = { step, semaphore, name, key, tickets, limit, lease: leaseMs * 1000 }
    return access.ask((server) => server.permits(call))
  }

  /** Has `granted` called whenever a waiting ticket of this semaphore gets a permit. */
  listen(granted: (ticket: number) => void): void {
    this.#granted = granted
  }

  /** Passes on to the semaphore that its waiting ticket got a permit. */
  granted(ticket: number): void {
    this.#granted?.(ticket)
  }

  /** Ends the use by a semaphore that closes: it hears of no more permits, and `onClose` removes it from those of the store. */
  close(): void {
    this.#granted = undefined
    this.options.onClose()
  }
}
