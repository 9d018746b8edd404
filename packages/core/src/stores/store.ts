import type { StoreFailure } from '../values/errors.js'
import type { Charge, Policy } from '../algorithms/contract/policy.js'

/*
 * The store contract.
 *
 * A store keeps the state of every key and applies any list of policies to it atomically: all of them are charged,
 * or none. It owns the clock; instants are whole microseconds on it. It knows no algorithm by name, only the
 * functions of `Algorithm`. A key that it does not hold has consumed nothing. State belongs to a limiter's name, a
 * list of shapes and a key. A keyspace is opened for a list of policies, and all of its calls are decided by that list;
 * keyspaces of one name and of equal shapes share their state, so that other limits act on what was already consumed.
 *
 * Operations answer at once where the state is in this process, and with a promise elsewhere.
 */
export interface Store {
  /**
   * true where state is in this process, so that every operation answers at once and none fails. Limiters guard calls
   * to any other store: with a deadline, a circuit breaker, and what `onStoreError` says.
   */
  readonly local?: boolean
  /** Where it is set, limiters remember what this store denied and deny it again without asking. Default: they do not. */
  readonly denialCache?: DenialCacheBounds
  /** Most calls that wait for this store's answer in a process, sent or not; default 10,000. At most 1,000 are sent. */
  readonly maxPending?: number
  /**
   * Called before the first call of a process. Calls wait until what it returns has settled, instead of their deadline,
   * which counts from then. Undefined where there is nothing to wait for.
   */
  start?(): Promise<unknown> | undefined
  /** Opens the state of one limiter under a list of policies. The same name and shapes give the same state. */
  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace
  /**
   * Microseconds on a clock of this process that never runs back. Only differences of it mean anything outside
   * the store; waits are measured with it. Throws StoreError CLOSED once the store is closed.
   */
  now(): number
  /**
   * The permits of a semaphore, shared by all semaphores of that name. A permit whose holder has not renewed it for `leaseMs`
   * milliseconds is free again; a store of this process needs no leases. A store without permits cannot be given to
   * `createSemaphore`.
   */
  permits?(name: string, leaseMs: number): Permits
  /** Lets go of everything held. Later operations fail. */
  close(): MaybePromise<void>
}

export interface DenialCacheBounds {
  /** Microseconds after which a denial is asked for again, so that other processes' corrections are seen. */
  readonly maxAge: number
  /** Most keys that are remembered at once. */
  readonly maxKeys: number
}

/** Operations that a store cannot carry out reject with StoreError, whose code begins with STORE_. */
export interface Keyspace {
  /**
   * What callers are told: the list that it was opened with, in the same order. Only capacities may be smaller, where
   * part of them is kept back.
   */
  readonly policies: readonly Policy[]
  /**
   * Asks for `cost` units under every policy. All are charged, or none.
   * - `consume` charges now; a cost of 0 only reads.
   * - `peek` answers what `consume` would and writes nothing.
   * - `book` charges at the earliest instant at which the cost passes, if that is at most `maxWait` microseconds away.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer>
  /** Whether a booked place still stands at its turn: its state may be lost, or the key held or blocked by now. */
  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'>
  /**
   * Gives a booked place back, once. Where nothing was written since, the key is as if the place had never been booked,
   * and this resolves to true. Otherwise the place's units are released, later places stay where they are, and this
   * resolves to false.
   */
  cancel(booking: Booking): MaybePromise<boolean>
  /** Changes what is known of a key. Resolves to the units that took effect; to 0 where the change has none. */
  correct(change: Correction): MaybePromise<number>
}

/** What a keyspace is asked to decide. */
export type Ask = 'consume' | 'peek' | 'book'

/** Units as of now, or something about the key as such. Durations are microseconds from now. */
export type Correction =
  /** Gives units back, never below empty; or charges units, whether they fit or not. */
  | { readonly kind: 'refund' | 'charge'; readonly key: string; readonly cost: number }
  /** Gives units of one charge back, as far as they still count. */
  | { readonly kind: 'release'; readonly key: string; readonly charge: DatedCharge; readonly units: number }
  /**
   * `block` denies everything; the latest call wins. `hold` denies `consume` and delays `book`, and never shortens a
   * hold.
   */
  | { readonly kind: 'block' | 'hold'; readonly key: string; readonly duration: number }
  /** Forgets the key: its state, its block, its hold. */
  | { readonly kind: 'reset'; readonly key: string }

/** Whether a change says something about the key as such, and not about units. */
export function isAboutKey({ kind }: Correction): boolean {
  return kind === 'block' || kind === 'hold' || kind === 'reset'
}

/** The call of one caller, as a store sees it. A store need not carry out a call whose caller is gone. */
export interface Caller {
  readonly gone: boolean
  /**
   * A store that gathers calls sets this while it has not written the call. One whose deadline passes meanwhile was
   * surely not carried out, and says nothing about the store.
   */
  unsent: boolean
  /** What the store wants to hear when a caller goes who may wait longer than a deadline. */
  left?: (() => void) | undefined
}

export type MaybePromise<T> = T | Promise<T>

/** Why a call was denied: no room now, a cost that never fits, a ban, or a pause. */
export type Reason = 'limit' | 'cost' | 'blocked' | 'held'

/** How one key stands under the list of policies. Instants are microseconds on the store's clock. */
export interface Answer {
  readonly now: number
  /** The earliest instant at which the cost passes: where it was booked if allowed. Infinity: never. */
  readonly at: number
  readonly reason: Reason | undefined
  /** Index of the binding policy. */
  readonly binding: number
  /** The least over the policies, 0 behind booked places. */
  readonly remaining: number
  /** The latest over the policies. */
  readonly resetAt: number
  /** Three numbers a policy, in declared order: earliest instant, remaining, resetAt. Only where there are several. */
  readonly parts: readonly number[] | undefined
  /** The place that `book` took ahead of now. */
  readonly booking: Booking | undefined
  /** Set where the units were charged at another instant than `at`: those of a lease, when it was booked. */
  readonly chargedAt?: number
  /** Set where the store did not decide. */
  readonly degraded?: Degraded
}

export interface Degraded {
  readonly why: StoreFailure
  readonly allowed: boolean
  /** What decided instead, and booked what was allowed. Undefined where nothing was charged. */
  readonly by: Keyspace | undefined
}

export function isDenied(answer: Answer): boolean {
  return answer.degraded ? !answer.degraded.allowed : answer.reason !== undefined
}

/** A charge, and the instant at which it was decided: state that began later knows nothing of it. */
export interface DatedCharge extends Charge {
  readonly decidedAt: number
}

/** A booked place, to confirm or to cancel. What else it holds is the store's own. */
export interface Booking extends DatedCharge {
  readonly key: string
}

/**
 * What a store tells its limiter beside answers. It may be told in the middle of an operation: it must not call the
 * store.
 */
export type Report = (notice: Notice) => void

export type Notice =
  | { readonly event: 'evicted' | 'healed'; readonly key: string }
  | { readonly event: 'degraded'; readonly reason: StoreFailure }
  | { readonly event: 'recovered'; readonly reason: StoreFailure; readonly decisions: number }
  /** Reported once for each `id`, which is the code where it is left out. */
  | { readonly event: 'warning'; readonly code: string; readonly message: string; readonly id?: string }

/**
 * For each key a number of permits, and a queue of tickets that wait for one, served in the order in which they came. A
 * ticket is a number that its semaphore never uses twice. Nothing here waits or has a timer: that is the semaphore's.
 */
export interface Permits {
  /** Takes a permit if one of `limit` is free and no ticket waits; true: it is held. If not, the ticket waits where `waits`. */
  take(key: string, ticket: number, limit: number, waits: boolean): MaybePromise<boolean>
  /** How each ticket stands, after free permits were granted under `limit`. Tickets that wait must be polled to stay. */
  poll(key: string, tickets: readonly number[], limit: number): MaybePromise<readonly TicketState[]>
  /** Keeps permits for another lease. One that the store has lost is held again if one is free, and else 'unknown'. */
  renew(key: string, tickets: readonly number[], limit: number): MaybePromise<readonly TicketState[]>
  /** Gives back what tickets hold, or their places in the queue. Free permits go to the oldest tickets that wait. */
  release(key: string, tickets: readonly number[], limit: number): MaybePromise<void>
  /** `granted` is called with tickets that got a permit while they waited: a hint, which may be lost. `poll` says. */
  listen(granted: (ticket: number) => void): void
  /** Ends `listen`. Permits that are held stay held. */
  close(): void
}

export type TicketState = 'unknown' | 'waiting' | 'held'
