import type { StoreFailure } from '../values/errors.js'
import type { Charge, Policy } from '../algorithms/contract/policy.js'
import type { GuardedPermitsOptions, GuardSettings } from './guard-options.js'
import type { Penalty } from './penalty.js'
import type { Permits } from './permits.js'
import type {
  ReservationChange,
  ReservationEffect,
  ReservationSettings,
  ReserveCall,
} from './reservations.js'

/*
 * The contract of a store.
 *
 * A store keeps the state of every key and applies any list of policies to it atomically: all of them are charged, or none.
 * It owns the clock; instants are whole microseconds on that clock. It knows no algorithm by name, only the functions of
 * `Algorithm`. A key that it does not hold has consumed nothing. State is identified by a limiter's name, a list of shapes
 * and a key. A keyspace is opened for a list of policies, by which all of its calls are decided. Keyspaces of one name and of
 * equal shapes share their state, so that changed limits act on recorded usage.
 *
 * Operations return their result if the state is in this process, and a promise otherwise.
 */
export interface Store {
  /**
   * Whether the state is in this process, so that every operation returns at once and none fails. Default false: limiters
   * ask the store through its `guard`.
   */
  readonly local?: boolean
  /**
   * Of a store that is not `local`: `guard` of `@sluice/core/store`, a deadline, a circuit breaker, a failure mode
   * (`onStoreError`) and leases for its calls.
   */
  readonly guard?: StoreGuard
  /** Bounds of the cache in which limiters keep this store's denials. Default: denials are not cached. */
  readonly denialCache?: DenialCacheBounds
  /** Most calls of a process that wait for this store, sent or not; default 10,000. At most 1,000 of them are sent. */
  readonly maxPending?: number
  /** Most lists of shapes that the store holds at once; default 1,000. A limiter writes a block under no more of them. */
  readonly maxShapes?: number | undefined
  /**
   * Called before the first call of a process. The first calls wait until the returned promise is settled; their deadlines
   * count from then. Undefined if there is nothing to wait for.
   */
  start?(): Promise<unknown> | undefined
  /** Where the store is, for messages; never credentials. The process is warned of outages of a store that says so. */
  readonly endpoint?: string
  /**
   * Optional: a StoreError that says why the store is not connected at the moment, undefined while it is. A call that gets no
   * answer meanwhile fails for this reason.
   */
  trouble?(): Error | undefined
  /**
   * Opens the state of one limiter under a list of policies. The same name and shapes give the same state, with a penalty and
   * without. A store without penalties may ignore `penalty`; limiters then reject the option at set-up. So with `reservations`,
   * under which a keyspace has a state of its own.
   */
  keyspace(
    name: string,
    policies: readonly Policy[],
    report: Report,
    penalty?: Penalty,
    reservations?: ReservationSettings,
  ): Keyspace
  /**
   * Microseconds on a clock of this process that never runs back. Limiters measure waits with it; outside the store only
   * differences have a meaning.
   * @throws {StoreError} CLOSED once the store is closed.
   */
  now(): number
  /**
   * The permits of a semaphore, shared by all semaphores of that name. A permit that was not renewed for `leaseMs`
   * milliseconds is free again. `createSemaphore` requires it of a store elsewhere; beside one in this process it keeps its own.
   */
  permits?(name: string, leaseMs: number): Permits
  /**
   * Optional: the board of that name, on which the processes that share the store leave texts for each other. Top keys of a
   * fleet (@sluice/metrics) require it.
   */
  board?(name: string): Board
  /** Optional: the records of operators about single keys, over all limiters of the store. `limiter.override` requires it. */
  records?(): Records
  /** Longest wait of the first calls for the first read of `records`, in milliseconds; default 1,000. */
  readonly startTimeout?: number | undefined
  /**
   * Optional: aborts when the store is closed. Calls that wait for their turn or for a permit then reject at once; without it
   * they reject when their wait is over.
   */
  readonly closed?: AbortSignal | undefined
  /** Whether its instants pass by the clock of another machine, so that waits for them take real time in tests too. */
  readonly keepsTime?: boolean | undefined
  /** Whether the end of a process, or a crash, empties it: limiters warn of budgets that it would forget. */
  readonly forgets?: boolean | undefined
  /** Releases all resources. Later operations fail. */
  close(): MaybePromise<void>
}

/**
 * The parts that limiters and semaphores put before a store that is not in this process. Such a store brings them, so that a
 * bundle without one does not contain them. There is one, `guard` of `@sluice/core/store`.
 */
export interface StoreGuard {
  /**
   * The store as one limiter uses it: every decision comes within the deadline, and leases are taken where they are asked
   * for. To close it leaves the store open.
   */
  store(store: Store, settings: GuardSettings): Store
  /**
   * The permits of one semaphore. Calls settle within the deadline, and while the store does not answer, or has too many
   * calls to answer, it is not asked.
   */
  permits(store: Store, options: GuardedPermitsOptions): Permits
  /**
   * Charges every part of a call on several keys that fits, or none if an enforced one does not, where some are elsewhere. Returns
   * what `charged` makes of the answers and of the time that the store took.
   */
  decideParts<T>(
    parts: readonly PlacedPart[],
    charged: (answers: readonly Answer[], storeMs: number) => MaybePromise<T>,
  ): MaybePromise<T>
}

export interface DenialCacheBounds {
  /** Longest age of a cached denial in microseconds, so that corrections of other processes are seen. */
  readonly maxAge: number
  /** Most denied keys that are cached at once. */
  readonly maxKeys: number
}

/** The state of one limiter under one list of policies. Operations that fail reject with StoreError. */
export interface Keyspace {
  /**
   * The policies that decisions report: the list that the keyspace was opened with, in the same order. Only capacities may
   * be smaller, if part of them is kept back.
   */
  readonly policies: readonly Policy[]
  /** The penalty that the keyspace was opened with and that it enforces. */
  readonly penalty?: Penalty | undefined
  /** The reservations of a keyspace that was opened with the option, and keeps them. */
  readonly reservations?: Reservations | undefined
  /** Whether `decide` answers at once now, as a store does in the process that has its state. Default: no. */
  readonly answersAtOnce?: boolean
  /** Optional: decides calls of this keyspace together with those of all keyspaces that have the same `program`. */
  readonly together?: Together | undefined
  /**
   * Decides on `cost` units. Either all policies are charged, or none.
   * - `consume` charges now; a cost of 0 only reads.
   * - `peek` answers as `consume` would and writes nothing.
   * - `try` answers as `consume` would and charges nothing.
   * - `book` charges at the earliest instant at which the cost passes, if that is at most `maxWait` microseconds away.
   * - `commit` charges now, and returns a `booking` to undo that with. A store without undo returns none.
   * With a penalty, `consume`, `try` and `book` also count refusals, in the same atomic step.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer>
  /**
   * Optional: decides as `consume` does, without a promise for each call. An answer that is known at once is returned;
   * otherwise the result is undefined, and `receiver` gets the answer after this has returned.
   * @throws what `decide` rejects with, if nothing was sent.
   */
  consume?(key: string, cost: number, receiver: Receiver<Answer>, caller?: Caller): Answer | undefined
  /** Optional: whether `consume` would pass now, of a keyspace that answers at once. It is asked before `try`. */
  fits?(key: string, cost: number): boolean
  /** Optional: the remembered denial of a `consume`, for which no store need be asked. */
  known?(key: string, cost: number): Answer | undefined
  /** Whether a booking is still valid at its turn: `lost` with its state, or `held` by a hold or block on the key. */
  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'>
  /**
   * Gives a booking back, once. If nothing was written since, the key is as if it had never been booked, and the result is
   * true. Otherwise the units of the booking are released, later bookings stay where they are, and the result is false.
   */
  cancel(booking: Booking, caller?: Caller): MaybePromise<boolean>
  /** Corrects the state of a key. The result is the units that took effect, 0 for a change without units. */
  correct(change: Correction, caller?: Caller): MaybePromise<number>
}

/** The reservations of a keyspace. */
export interface Reservations {
  /**
   * Charges as `consume` does, and keeps the charge as a reservation. Denied with the reason 'reservations' where the key has as
   * many open ones as it may.
   */
  reserve(call: ReserveCall, caller?: Caller): MaybePromise<Answer>
  /** Changes a reservation. May be sent again until it is answered: a reservation is settled once. */
  change(change: ReservationChange, caller?: Caller): MaybePromise<ReservationEffect>
}

/** One part of a decision on several keys. */
export interface Part<K = Keyspace> {
  readonly keyspace: K
  readonly key: string
  readonly cost: number
  /** Whether its denial denies the whole. Not so in shadow mode. */
  readonly enforce: boolean
}

/** A part, and whether its store is in this process, or none is asked. */
export interface PlacedPart extends Part {
  readonly isHere: boolean
}

/** The means to decide parts of one store in one atomic step. */
export interface Together {
  /** The program that decides: parts whose keyspaces have the same one may go together. */
  readonly program: object
  /**
   * Optional: makes ready for calls on keys of these keyspaces, or of some of them. False if they cannot go together: such a call
   * is decided in two steps, as one on several stores is.
   */
  prepare?(keyspaces: readonly Keyspace[]): boolean
  /**
   * Charges every part that fits, or none if an enforced one does not. No two parts have the same state. The answers are
   * those of `consume` if the whole passes, otherwise those of `try`. They are returned, or the result is undefined, and
   * `receiver` gets them after this has returned: undefined if these keys cannot go together.
   */
  decide(
    parts: readonly Part[],
    receiver: WholeReceiver,
    caller?: Caller,
  ): MaybePromise<readonly Answer[]> | undefined
}

/** Gets the answers to a call on several keys, or undefined if they cannot go together. */
export type WholeReceiver = Receiver<readonly Answer[] | undefined>

/** The kind of a decision. */
export type Ask = 'consume' | 'peek' | 'try' | 'book' | 'commit'

/** A change to the units or the state of a key. Durations are microseconds from now. */
export type Correction =
  /** `refund` gives units back, never below empty; `charge` charges units, whether they fit or not. */
  | { readonly kind: 'refund'; readonly key: string; readonly cost: number }
  | { readonly kind: 'charge'; readonly key: string; readonly cost: number; readonly counted?: ChargeCounts }
  /** Gives back units of one charge, as far as they still count. */
  | { readonly kind: 'release'; readonly key: string; readonly charge: DatedCharge; readonly units: number }
  /**
   * Denies everything; the latest call wins, and a duration of 0 ends the block. With `isPenalty` it is the block of a penalty,
   * which never shortens another one; where keys are evicted it goes before those of operators. One of a duration of 0 clears the
   * refusals that were counted for a penalty, and nothing else.
   */
  | { readonly kind: 'block'; readonly key: string; readonly duration: number; readonly isPenalty?: boolean }
  /** Denies `consume` and delays `book`; never shortens a hold. */
  | { readonly kind: 'hold'; readonly key: string; readonly duration: number }
  /** Deletes the state of the key, its block and its hold. */
  | { readonly kind: 'reset'; readonly key: string }

/**
 * Called with a charge: with its instant, and three numbers per policy: the units that count after it, those of them that it has
 * charged, and the instant at which all are given back. Where it is called again, as an update is made anew, or a charge in steps, the
 * last call has the charge as a whole. A store that never calls it knows no shares of limits that `settle` and `charge` cross.
 */
export type ChargeCounts = (counts: readonly number[]) => void

/** Whether a change concerns the key as a whole (a block, a hold, a reset) and not its units. */
export function isAboutKey({ kind }: Correction): boolean {
  return kind === 'block' || kind === 'hold' || kind === 'reset'
}

/** Whether one call is still waited for. */
export interface Caller {
  /** True once the caller no longer waits for the answer. A store need not carry out its call. */
  readonly gone: boolean
  /**
   * Called by a store that queues calls: with true when it keeps the call back, with false when it sends it. If the deadline
   * passes in between, the call was not carried out, and its timeout says nothing about the store.
   */
  queued?(isQueued: boolean): void
  /** A store may set it, to be called when the caller is gone. Only callers of `book` call it. */
  left?: (() => void) | undefined
  /** An instant of `nowMs`, of a caller that takes several steps: the deadline of all counts from it. 0 is none yet. */
  readonly since?: number
  /** Called once a step is answered, with the instant at which it began. */
  began?(at: number): void
  /** Set on a call on several keys that is known to be denied: 'try' may say how a key stood within the last second. */
  readonly isDenied?: boolean
  /** Set on a `consume` or a `reserve` that is made again while it is denied: a remembered denial is no answer to it. */
  readonly asksAgain?: boolean
}

/** Gets the outcome of one call, once. */
export interface Receiver<T> {
  answered(answer: T): void
  failed(error: unknown): void
}

export type MaybePromise<T> = T | Promise<T>

/** Why a call was denied: no room now, a cost that never fits, a block, a hold, or too many open reservations. */
export type Reason = 'limit' | 'cost' | 'blocked' | 'held' | 'reservations'

/** The reasons by number, as a store may send or keep them; 0 is none. */
export const REASONS: readonly (Reason | undefined)[] = [
  undefined,
  'limit',
  'cost',
  'blocked',
  'held',
  'reservations',
]

/** The answer to one call. Instants are microseconds on the store's clock. */
export interface Answer {
  readonly now: number
  /** The earliest instant at which the cost passes; if allowed, the instant at which it was booked. Infinity: never. */
  readonly at: number
  readonly reason: Reason | undefined
  /** Index of the binding policy. */
  readonly binding: number
  /** The smallest over the policies; 0 while there are future bookings. */
  readonly remaining: number
  /** The latest over the policies. */
  readonly resetAt: number
  /** Three numbers per policy, in declared order: earliest instant, remaining, resetAt. Only if there are several. */
  readonly parts: readonly number[] | undefined
  /**
   * Of each policy the units that count now, rounded up; where a place is booked ahead, those that count then. Required only where
   * it is not the capacity less what remains: of a key that is blocked, held or booked ahead, and of one that was charged beyond
   * its capacity. Empty: none is known to count.
   */
  readonly used?: readonly number[] | undefined
  /** Of each policy the units that open reservations hold, rounded up: of a peek and a denial in a keyspace that reserves. */
  readonly held?: readonly number[] | undefined
  /** Where it says what is held: an instant before which no open reservation ends. */
  readonly nextEnd?: number | undefined
  /** The booking that `book` made ahead of now, or `commit` now. */
  readonly booking: Booking | undefined
  /**
   * Of a denial: the instant at which a cost of `remaining + 1` passes; Infinity: never. Before it every larger cost is denied
   * too. A store whose denials are cached names it; without it callers who vary the cost ask more often.
   */
  readonly nextUnitAt?: number
  /**
   * Of a denial: the end of the key's block, also of one that this refusal begins. A store that does not name it leaves a
   * penalty's block under the list that began it, and the blocks of others unknown in an outage.
   */
  readonly blockedUntil?: number | undefined
  /** Set if the units were charged at another instant than `at`: for a lease, when it was booked. */
  readonly chargedAt?: number
  /** Of an allowed call: a number for the state that was charged. A store that sets it gets it back with the charge (`DatedCharge`). */
  readonly epoch?: number | undefined
  /** Set if other units were charged than the call's: all of a lease with the first call that it answers, and 0 with the others. */
  readonly slice?: number
  /** Set if the call did not ask the store: a cached denial, a lease, or an answer that needs no state. */
  readonly from?: 'cache' | 'lease' | 'none'
  /** Set if the store did not decide. */
  readonly degraded?: Degraded
}

export interface Degraded {
  readonly why: StoreFailure
  /** If so, `reason` is undefined. */
  readonly allowed: boolean
  /** The keyspace that was asked instead. It was charged if it allowed the call. Undefined if none was asked. */
  readonly by: Keyspace | undefined
}

/** The units that count, rounded up, under a policy by which an answer was made: the `i`-th of its list. */
export function usedOf({ parts, remaining, used }: Answer, { capacity }: Policy, i: number): number {
  return used ? (used[i] ?? 0) : capacity - (parts?.[3 * i + 1] ?? remaining)
}

/**
 * Whether an answer denies its call: by a reason, or where the store could not decide (`degraded`) by what the failure mode
 * chose.
 */
export function isDenied(answer: Answer): boolean {
  return answer.degraded ? !answer.degraded.allowed : answer.reason !== undefined
}

/** A charge with the instant at which it was decided: state that began later does not contain it. */
export interface DatedCharge extends Charge {
  readonly decidedAt: number
  /** The `epoch` of the answer, by which a store knows a charge to a state that it has lost, whatever its clock says. */
  readonly epoch?: number | undefined
}

/** A booking, to be confirmed or cancelled. A store may add fields of its own. */
export interface Booking extends DatedCharge {
  readonly key: string
}

/**
 * Receives the notices of a store. It may be called in the middle of an operation, so it must not call the store.
 */
export type Report = (notice: Notice) => void

export type Notice =
  | { readonly event: 'evicted' | 'healed'; readonly key: string }
  | ({ readonly event: 'degraded' } & Outage)
  | ({ readonly event: 'recovered'; readonly decisions: number } & Outage)
  | ({ readonly event: 'nearing' } & Crossing)
  /** Reported once for each `id`; default `code`. */
  | { readonly event: 'warning'; readonly code: string; readonly message: string; readonly id?: string }

/** A charge that has crossed a share of a limit. */
export interface Crossing {
  readonly key: string
  /** Name of the policy. */
  readonly policy: string
  /** The share of its limit, as the option `nearing` has it. */
  readonly share: number
  /** Milliseconds until the window of the charge ends. */
  readonly resetAfterMs: number
  /**
   * Whose count it was: that of a 'store' or of 'memory'; 'lease', the store's, in which units count that this process has taken in
   * advance; 'local', that of this process alone while the store did not decide.
   */
  readonly decidedBy: 'memory' | 'store' | 'lease' | 'local'
}

/** Why a store does not decide. */
export interface Outage {
  readonly reason: StoreFailure
  /** The code of the failure: `ECONNREFUSED` of the system, `WRONGPASS` of Redis, or that of the StoreError. */
  readonly cause: string
  /** Never holds a password. */
  readonly message: string
  /** Where the store is, if it says so. */
  readonly endpoint: string | undefined
}

/** Holds a text of each author until it expires. An author is a process, or a part of one. */
export interface Board {
  /**
   * Replaces the author's text. It expires exactly `lifeMs` milliseconds later on the store's clock; whole, 1 to
   * 3,600,000.
   */
  post(author: string, text: string, lifeMs: number): void | Promise<void>
  /** The texts that have not expired, in no order. */
  read(): readonly string[] | Promise<readonly string[]>
}

/**
 * What operators have decided about single keys (overrides, blocks, holds), as texts. Every process of the store reads what has
 * changed once a second. A record's id begins with the name of its group and a line break; groups are bounded.
 *
 * Each write has a version, above those of all writes before: the instant of the write in microseconds, or the next free one.
 */
export interface Records {
  /**
   * Writes a record in place of the one of its id, or removes that if the text is empty, in one step. A removal is a change also
   * where there is no such record: a process may still know one that was dropped at its end, if the clock was set back since. Returns
   * the changes since the version `since`; undefined, with nothing written, if the group has its `most` records already.
   */
  write(record: NewRecord, since: number): MaybePromise<RecordChanges | undefined>
  /**
   * The changes since a version, or all records where that is not among the newest 1,000; 0 is none. `seen` are ids of records
   * that have decided calls, which is noted, or have ended, which are dropped.
   */
  read(since: number, seen: readonly string[]): MaybePromise<RecordChanges>
}

export interface NewRecord {
  readonly id: string
  /** Empty: the record is removed. */
  readonly text: string
  /** The end, in microseconds of the store's clock; 0: `life` microseconds from now. */
  readonly until: number
  readonly life: number
  readonly most: number
}

/** Instants are microseconds on the store's clock. */
export interface RecordChanges {
  /** The version of the latest write; 0 without one. */
  readonly version: number
  readonly now: number
  /** Whether these are all records there are, and any other that was known is gone. */
  readonly areAll: boolean
  /** Changes in their order: the last of an id counts. */
  readonly records: readonly StoredRecord[]
  /** Of a write: its own version, after which others may have been written. */
  readonly written?: number
}

export interface StoredRecord {
  readonly id: string
  /** Empty: it was removed. */
  readonly text: string
  readonly version: number
  readonly until: number
  /** The last report that it has decided a call; 0 without one. */
  readonly appliedAt: number
}

/** Changes that are found by their versions. */
export const LOGGED_CHANGES = 1000
