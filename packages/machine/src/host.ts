import { memoryStore, type MemoryStore } from '@sluice/core'
import {
  decideAtOnce,
  type HolderTickets,
  type PermitCall,
  type PermitHolder,
  PermitQueues,
} from '@sluice/core/internal'
import type {
  Answer,
  Ask,
  Booking,
  Clock,
  Correction,
  DatedCharge,
  Keyspace,
  Notice,
  Part,
  RecordChanges,
  Report,
  ReservationChange,
  ReservationEffect,
  ReserveCall,
  TicketState,
} from '@sluice/core/store'
import type {
  MachineBooking,
  MachineCall,
  MachinePart,
  MachineServer,
  ServerListener,
} from './machine-server.js'
import { carryOutOn, type RecordRequest } from './machine-records.js'
import type { WirePolicies } from './wire-policies.js'

export interface HostOptions {
  readonly maxKeys?: number
  readonly maxShapes?: number
  readonly clock?: Clock | undefined
}

/** The state of a machine, in the process that serves: an ordinary memory store, whose clock decides, and the permits. */
export class Host {
  /** A random number, never 0: the state begins anew with each host. */
  readonly epoch = 1 + Math.floor(Math.random() * 2 ** 48)
  readonly bookings = new KeptBookings()
  /** The process whose call is carried out: it alone hears what the call caused. */
  caller: HostCaller | undefined
  readonly #store: MemoryStore
  readonly #permits = new PermitQueues(() => this.now())
  readonly #reports = new Map<string, Report>()

  /**
   * Makes the memory store in which one process keeps the state for all processes of its machine: with at most `maxKeys` keys and
   * `maxShapes` tables for lists of policies, and with this clock, if they are given; otherwise with the defaults of that store.
   */
  constructor({ maxKeys, maxShapes, clock }: HostOptions) {
    this.#store = memoryStore({
      ...(maxKeys !== undefined && { maxKeys }),
      ...(maxShapes !== undefined && { maxShapes }),
      ...(clock && { clock }),
    })
  }

  /** The time in microseconds, on the clock that decides for all processes. */
  now(): number {
    return this.#store.now()
  }

  /**
   * Opens the state of a limiter under one list of policies, for the calls of one process, `caller`. The state is the same for
   * all processes that open an equal list; only the notices that calls cause go to their own process.
   */
  open({ name, policies, penalty, max }: WirePolicies, caller: HostCaller): HostedKeyspace {
    const report = this.#reportOf(name)
    const reservations = max === undefined ? undefined : { max }
    const open = (): Keyspace => this.#store.keyspace(name, policies, report, penalty, reservations)
    const keyspace = this.carryOut(caller, open)
    return new HostedKeyspace(this, caller, keyspace)
  }

  /**
   * The callback by which the store reports on limiters of this name, one for all of them. It passes a notice to the process
   * whose call is being carried out (`caller`), and drops it if there is none.
   */
  #reportOf(name: string): Report {
    let report = this.#reports.get(name)
    if (!report) this.#reports.set(name, (report = (notice) => this.caller?.notice(name, notice)))
    return report
  }

  /**
   * Runs `act` as a call of this process: what the store reports meanwhile is sent to that process. Returns what `act` returns.
   */
  carryOut<T>(caller: HostCaller, act: () => T): T {
    this.caller = caller
    try {
      return act()
    } finally {
      this.caller = undefined
    }
  }

  /**
   * Decides a call on several keys in one step, and returns an answer for each of its parts. All parts are charged, or none if
   * one of them that is enforced does not fit; of parts in shadow mode those that fit.
   */
  together(parts: readonly Part<HostedKeyspace>[]): readonly Answer[] {
    return decideAtOnce(parts)
  }

  /**
   * Carries out one step (take, wait, poll, renew or release) for some tickets of a semaphore. `holder` is the process that they
   * belong to. Returns the state of each ticket: held, waiting or unknown.
   */
  permits(holder: PermitHolder, call: PermitCall): readonly TicketState[] {
    return this.#permits.carryOut(holder, call)
  }

  /** Carries out a request on the records of the machine. */
  records(request: RecordRequest): RecordChanges | null {
    return carryOutOn(this.#store.records!(), request)
  }

  /**
   * Notes that a server before this one has ended, and with it the record of who held which permit. For a while permits are
   * granted only to processes that renew theirs.
   */
  stateWasLost(): void {
    this.#permits.stateWasLost()
  }

  /** Gives back all permits of a process that has gone, and removes its waiting tickets from the queues. */
  left(holder: PermitHolder): void {
    this.#permits.leave(holder)
  }

  close(): void {
    Promise.resolve(this.#store.close()).catch(() => {})
  }
}

/** A process whose calls are carried out. */
export interface HostCaller {
  notice(name: string, notice: Notice): void
}

/** The state of one limiter under one list, for the calls of one process. Memory answers at once. */
export class HostedKeyspace {
  /** The host's epoch. V8 keeps a number that was undefined once as an object, and so makes none for each answer. */
  readonly #epoch: number | undefined = undefined

  /**
   * Serves the calls of one client process (`caller`) on the state of one limiter (`keyspace`), which `host`, the memory store of this
   * process, keeps for all processes of the machine.
   */
  constructor(
    private readonly host: Host,
    private readonly caller: HostCaller,
    private readonly keyspace: Keyspace,
  ) {
    this.#epoch = host.epoch
  }

  /**
   * Decides a call, and returns the store's answer (`#completed`). `caller` of the host is set meanwhile, so that notices go to the
   * process that called.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const host = this.host
    host.caller = this.caller
    const answer = this.keyspace.decide(ask, key, cost, maxWait) as Answer
    host.caller = undefined
    return this.#completed(key, answer)
  }

  /** Reserves, and returns the store's answer as `decide` does. */
  reserve(call: ReserveCall): Answer {
    const reserve = (): Answer => this.keyspace.reservations!.reserve(call) as Answer
    return this.#completed(call.key, this.host.carryOut(this.caller, reserve))
  }

  /** Changes a reservation. */
  change(change: ReservationChange): ReservationEffect {
    const act = (): ReservationEffect => this.keyspace.reservations!.change(change) as ReservationEffect
    return this.host.carryOut(this.caller, act)
  }

  /**
   * Adds to the answer of an allowed call the epoch of this server, by which its charge is known later: to the answer itself, which
   * nothing else holds, as a copy would take several times as long as the decision. Adds to a denial `nextUnitAt`, the instant at
   * which one unit more than now remains would fit: until then the calling process can deny larger calls by itself. That instant is
   * found by a peek, which charges nothing.
   */
  #completed(key: string, answer: { -readonly [Name in keyof Answer]: Answer[Name] }): Answer {
    if (answer.reason === undefined) {
      answer.epoch = this.#epoch
      return answer
    }
    const { at } = this.keyspace.decide('peek', key, answer.remaining + 1, 0) as Answer
    return { nextUnitAt: at, ...answer }
  }

  /**
   * Whether the booking of this number still stands, is lost, or is held because its key is blocked or paused. A booking that is
   * not kept any more counts as lost.
   */
  confirm(number: number): 'stands' | 'lost' | 'held' {
    const booking = this.host.bookings.get(number)
    return booking ? (this.keyspace.confirm(booking) as 'stands' | 'lost' | 'held') : 'lost'
  }

  /**
   * Cancels the booking of this number. A booking is a charge that can be taken back, mostly of a call that waits, made for the
   * later instant at which the call has its turn. Returns true if the booking is undone as if it had never been made, which is
   * possible while no later call has built on it. Otherwise its units are given back as far as they still count, and the result is
   * false. If the booking is not kept any more, they are given back by `charge`, the instants and the cost that the client sent.
   */
  cancel(number: number, key: string, charge: DatedCharge): boolean {
    const { bookings } = this.host
    const booking = bookings.get(number)
    bookings.forget(number)
    if (booking) return this.host.carryOut(this.caller, () => this.keyspace.cancel(booking) as boolean)
    this.correct({ kind: 'release', key, charge, units: charge.cost })
    return false
  }

  /** Makes a correction, such as a refund, a block or a reset. Returns the units that took effect. */
  correct(correction: Correction): number {
    return this.host.carryOut(this.caller, () => this.keyspace.correct(correction) as number)
  }
}

/** The server, when this process serves: calls run immediately. */
export class LocalServer implements MachineServer, PermitHolder {
  readonly tickets: HolderTickets = new Map()
  readonly #keyspaces = new WeakMap<WirePolicies, HostedKeyspace>()

  /**
   * A server for this process alone, which calls `host` directly; `listener` gets what it reports. `close` calls `end`, which
   * stops the socket that serves other processes.
   */
  constructor(
    private readonly host: Host,
    private readonly listener: ServerListener,
    private readonly end: () => void,
  ) {}

  /** The random number of this server's state. */
  get epoch(): number {
    return this.host.epoch
  }

  /**
   * Decides a call of this process itself. If that makes a booking (a charge that can be taken back, mostly of a call that waits
   * for its turn), the host keeps it, and the answer gets a MachineBooking with its number instead. By the number this process
   * confirms or cancels the booking in the same way as a client in another process, which cannot have the booking itself.
   */
  decide(list: WirePolicies, { ask, key, cost, maxWait }: MachineCall): Answer {
    const answer = this.keyspace(list).decide(ask, key, cost, maxWait)
    if (!answer.booking) return answer
    const { at, decidedAt } = answer.booking
    const number = this.host.bookings.keep(answer.booking, answer.now)
    const booking: MachineBooking = {
      key,
      at,
      cost,
      decidedAt,
      epoch: this.epoch,
      number,
      isCancelled: false,
    }
    return { ...answer, booking }
  }

  /** Decides a call on several keys in one step, with an answer for each of its parts. */
  together(parts: readonly MachinePart[]): readonly Answer[] {
    const placed = parts.map((part) => ({ ...part, keyspace: this.keyspace(part.list) }))
    return this.host.together(placed)
  }

  /** Whether a booking of this process stands, is lost, or is held because its key is blocked or paused. */
  confirm(list: WirePolicies, { number }: MachineBooking): 'stands' | 'lost' | 'held' {
    return this.keyspace(list).confirm(number)
  }

  /**
   * Cancels a booking of this process. Returns true if it is undone as if it had never been made, false if its units were only
   * given back.
   */
  cancel(list: WirePolicies, booking: MachineBooking): boolean {
    return this.keyspace(list).cancel(booking.number, booking.key, booking)
  }

  /** Makes a correction, such as a refund or a block. Returns the units that took effect. */
  correct(list: WirePolicies, correction: Correction): number {
    return this.keyspace(list).correct(correction)
  }

  reserve(list: WirePolicies, call: ReserveCall): Answer {
    return this.keyspace(list).reserve(call)
  }

  change(list: WirePolicies, change: ReservationChange): ReservationEffect {
    return this.keyspace(list).change(change)
  }

  /** Carries out one step of this process for some of its tickets of a semaphore. Returns their states. */
  permits(call: PermitCall): readonly TicketState[] {
    return this.host.permits(this, call)
  }

  records(request: RecordRequest): RecordChanges | null {
    return this.host.records(request)
  }

  /** Passes a notice about a limiter on to this process. */
  notice(name: string, notice: Notice): void {
    this.listener.notice(name, notice)
  }

  /**
   * Reports that a waiting ticket of the semaphore with this number got a permit. It does so in a microtask: the call that gave
   * the permit back has not returned yet, and its caller is not to be interrupted.
   */
  granted(semaphore: number, ticket: number): void {
    queueMicrotask(() => this.listener.granted(semaphore, ticket))
  }

  /** Ends this process's service for the others; the state is lost. */
  close(): void {
    this.end()
  }

  /** The state under a list of policies, opened at the first call with the list and kept as long as the list lives. */
  keyspace(list: WirePolicies): HostedKeyspace {
    let keyspace = this.#keyspaces.get(list)
    if (!keyspace) this.#keyspaces.set(list, (keyspace = this.host.open(list, this)))
    return keyspace
  }
}

/**
 * The bookings of all processes, by number. A booking is forgotten a minute after its turn, when its caller has long asked for
 * it; the check is made each time their number has doubled.
 */
class KeptBookings {
  readonly #byNumber = new Map<number, Booking>()
  #numbers = 0
  #sweepAtSize = LEAST_SWEPT_SIZE

  /**
   * Keeps a booking, and returns the number by which its process confirms or cancels it. `now`, in microseconds, serves to forget
   * old bookings when many are kept.
   */
  keep(booking: Booking, now: number): number {
    const number = ++this.#numbers
    this.#byNumber.set(number, booking)
    if (this.#byNumber.size >= this.#sweepAtSize) this.#sweep(now)
    return number
  }

  /** The booking of this number; undefined once it is forgotten. */
  get(number: number): Booking | undefined {
    return this.#byNumber.get(number)
  }

  forget(number: number): void {
    this.#byNumber.delete(number)
  }

  /**
   * Forgets the bookings whose turn was more than a minute before `now`, in microseconds. It runs again only when twice as many
   * are kept, so that its cost for each booking stays the same however many there are.
   */
  #sweep(now: number): void {
    for (const [number, { at }] of this.#byNumber) if (at + KEPT_US < now) this.#byNumber.delete(number)
    this.#sweepAtSize = Math.max(LEAST_SWEPT_SIZE, 2 * this.#byNumber.size)
  }
}

const LEAST_SWEPT_SIZE = 1024
const KEPT_US = 60_000_000
