import type { Policy } from '../algorithms/contract/policy.js'
import { memoryStore } from '../stores/memory/index.js'
import { giveBack } from '../stores/giving-back.js'
import type { ReservationChange, ReservationEffect, ReserveCall } from '../stores/reservations.js'
import { type Answer, isDenied, type Receiver } from '../stores/store.js'
import type { Report, Reservations, Store } from '../stores/store.js'
import { PolicyError } from '../values/errors.js'
import { Reservation, reservedOf } from './reservation.js'
import { ReservationDeniedError, whileExtended } from './while-extended.js'
import { requireReserving, reserveOf, type ReserveOptions, type ReserveTerms } from './reserving-options.js'
import {
  CONTRACT,
  CONTRACT_NUMBER,
  FOLLOW,
  HEARS,
  OPEN_PART,
  REPORT_PART,
  RESERVE_PART,
  SETTINGS,
  UNREAD,
} from '../values/contract.js'
import { type Duration, parseDuration } from '../values/duration.js'
import { closedError } from '../values/closing.js'
import { storedKey } from '../values/key.js'
import { ANSWER, Decision } from './decision.js'
import { explain, type Explanation } from './explain.js'
import { Events, type LimiterEvents, type Listener } from './events.js'
import { KnownRecords, type RecordListener, LimiterRecords } from './known-records.js'
import {
  CHECKED,
  checkBlockOptions,
  type CheckedOptions,
  checkShapeOptions,
  costOf,
  KEY,
  readLimiterOptions,
  REPORTS,
  waitOf,
} from './limiter-options.js'
import type { AcquireOptions, BlockOptions, CallOptions, ShapeOptions } from './limiter-options.js'
import { HeldUnits } from './held-units.js'
import { impose, type KeyAct, lift } from './key-acts.js'
import type { LimiterOptions, LimiterSettings } from './limiter-options.js'
import type { ListenOptions } from '../values/listeners.js'
import {
  type KeyOverride,
  override,
  type OverrideOptions,
  overrides,
  type OverriddenLimiter,
  recordsOf,
  recordShown,
} from './overrides.js'
import { warnIfShort } from '../values/short-duration.js'
import { Nearing } from './nearing.js'
import { warnIfFresh } from './penalty-options.js'
import { type PolicySet, PolicySets } from './policy-set.js'
import type { LimiterPart } from './limiter-part.js'
import { SuspendedKeyspace } from './suspended-keyspace.js'
import { keyspaceOf, WaitQueue } from './wait-queue.js'

/**
 * Makes a limiter, which enforces a list of policies per key.
 * @throws {PolicyError} when an option cannot work; docs/errors.md lists the codes.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * const limiter = createLimiter({ policies: [gcra({ limit: 100, window: '1m' })] })
 * const decision = await limiter.consume('user:42')
 * if (!decision.allowed) console.log(`${decision.reason}, retry in ${decision.retryAfterMs} ms`)
 */
export function createLimiter(options: LimiterOptions): Limiter {
  return new Limiter(options)
}

/** Made by `createLimiter`. After `close()`, every method throws StoreError CLOSED, or rejects with it. */
export class Limiter {
  readonly name: string
  readonly #settings: LimiterSettings
  readonly #store: Store
  readonly #ownsStore: boolean
  readonly #events: Events
  readonly #sets: PolicySets
  /** Returns the policies of calls that bring none. */
  readonly #policies: () => readonly Policy[]
  /** The set of these, while it need not be looked up: undefined where `#policies` is asked at each call, and once it has changed. */
  #ownSet: PolicySet | undefined
  /** The list that `#policies` returned last, and its set. */
  #lastList: readonly Policy[]
  #lastSet: PolicySet
  /** Makes the next call ask `#policies` anew. Undefined unless that reports when its policies change. */
  readonly #forgetOwnSet: (() => void) | undefined
  readonly #queue: WaitQueue
  /** The records of its keys, which all limiters of its name and store share. */
  readonly #records: LimiterRecords
  readonly #leaseMs: number
  /** Whether it was made with `reservations`. */
  readonly reserves: boolean
  readonly #held: HeldUnits | undefined
  #closed = false

  /**
   * Checks the options, and opens `policies` and each list of `tiers` as a set: policies and their state. A store that is not in this
   * process is used behind its guard: deadline, circuit breaker, failure mode and leases. Without a store the limiter makes a memory
   * store. A guard or store that it has made is closed with it (`#ownsStore`). If `policies` is a function, it is asked at each call,
   * or, if it tells when they change (`follow`), at the first call after a change.
   */
  constructor(options: LimiterOptions) {
    const settings = readLimiterOptions(options)
    const { name = 'default', policies, tiers, store, penalty, enforce, nearing: shares } = settings
    const {
      name: _name,
      policies: _policies,
      tiers: _tiers,
      penalty: _penalty,
      nearing: _nearing,
      reservations: _reservations,
      ...inheritable
    } = options
    this.name = name
    this.#settings = inheritable
    this.#leaseMs = settings.leases?.ttl ?? 0
    this.#store = store ? (store.local ? store : store.guard!.store(store, settings)) : memoryStore()
    this.#ownsStore = this.#store !== store
    this.#events = new Events(name, this.#store.local === true)
    const report: Report = (notice) => this.#events.receive(notice)
    const nearing = shares && new Nearing(shares, this.#store.local ? 'memory' : 'store', report)
    this.#sets = new PolicySets({ limiter: name, enforce, nearing }, settings, this.#store, report)
    this.reserves = settings.reservations !== undefined
    if (this.reserves) this.#held = new HeldUnits()
    this.#policies = typeof policies === 'function' ? policies : () => policies
    const firstList = this.#policies()
    const firstSet = this.#sets.declare([firstList, ...tiers], store?.maxShapes)
    this.#lastList = firstList
    this.#lastSet = firstSet
    const follow = (policies as { readonly [FOLLOW]?: (changed: () => void) => void })[FOLLOW]
    this.#forgetOwnSet = follow && (() => void (this.#ownSet = undefined))
    follow?.(this.#forgetOwnSet!)
    const isAskedAtEachCall = typeof policies === 'function' && !follow
    this.#ownSet = isAskedAtEachCall ? undefined : firstSet
    if (penalty) warnIfFresh(name, firstList, penalty)
    const hasWindow = (list: readonly Policy[]) => list.some(({ algorithm }) => algorithm.hasWindows)
    if (nearing && ![firstList, ...tiers].every(hasWindow))
      throw new PolicyError('INVALID_NEARING', NO_WINDOW)
    this.#queue = new WaitQueue(this.#store)
    this.#records = KnownRecords.of(store ?? this.#store)?.enter(name) ?? new LimiterRecords(undefined)
  }

  /** @internal */
  get [CONTRACT](): number {
    return CONTRACT_NUMBER
  }

  /** @internal */
  get [SETTINGS](): LimiterSettings {
    return this.#settings
  }

  /**
   * @internal Opens one key of a call on several keys (a part): the state in which its `cost` is charged, and whether this
   * process decides about it (`isHere`): if its store is here, or a limit of 0 denies every cost without a store. `policies` are
   * those of the call, undefined for the limiter's own. `callerKey` may be long; stores keep `key`.
   * `isNoted`: the call decides, so an override of the key has been applied.
   */
  [OPEN_PART](callerKey: string, cost: number, policies?: readonly Policy[], isNoted = true): LimiterPart {
    const key = storedKey(callerKey)
    const given = this.#policySetOf(policies)
    const mayBeOverridden = this.#records.mayHaveOverrides
    const set = mayBeOverridden ? this.#records.withOverride(given, key, isNoted) : given
    const { keyspace, enforce } = set
    const isHere = this.#store.local || set.exempt || keyspace instanceof SuspendedKeyspace
    const store = this.#settings.store ?? this.#store
    return {
      limiter: this,
      set,
      given,
      keyspace,
      enforce,
      store,
      isHere,
      mayBeOverridden,
      callerKey,
      key,
      cost,
    }
  }

  /** @internal */
  [HEARS](set: PolicySet): boolean {
    return this.#events.listeners.heard.decision !== undefined || set.nearing !== undefined
  }

  /** @internal */
  get [UNREAD](): Promise<void> | undefined {
    return this.#records.mayHaveOverrides ? this.#records.known?.untilFirstRead() : undefined
  }

  /**
   * @internal Reserves the units of a `part` (one key and its cost) for `ttl` milliseconds; `atEnd` of them stay charged if nothing
   * settles the reservation before. Waits for units for at most `maxWait` milliseconds, and asks each time under the override of the
   * key that is in force then; a key that an override exempts has no reservations, and its decision charges nothing. Returns the
   * decision, which the caller reports to listeners, and the milliseconds that the store took. `signal` gives up the wait.
   */
  async [RESERVE_PART](
    part: LimiterPart,
    { ttl, atEnd, maxWait }: ReserveTerms,
    signal?: AbortSignal,
  ): Promise<{ readonly decision: Decision; readonly storeMs: number }> {
    const { given, callerKey, key, cost } = part
    const randomId = 1 + Math.floor(Math.random() * 2 ** 48)
    const call = { key, cost, id: randomId, ttl: ttl * 1000, atEnd }
    const { answer, waited, storeTime } = await this.#queue.turnByAsking(part.set, {
      ask: (how, caller) => {
        const { keyspace } = (part.set = this.#records.withOverride(given, key, true))
        const { reservations } = keyspace
        return how !== 'peek' && reservations
          ? reservations.reserve(call, caller)
          : keyspace.decide(how, key, cost, 0, caller)
      },
      undo: (late) => this.#reservationMade(part, call, late).release(),
      charge: 'consume',
      maxWait: maxWait * 1000,
      signal,
    })
    const { set } = part
    const mayGoOn = !isDenied(answer) || !set.enforce
    // A call that passes uncharged has a reservation that holds nothing: in shadow mode, in an outage, and on an exempt key.
    const reservation = mayGoOn ? this.#reservationMade(part, call, answer) : undefined
    if (reservation) this.#held!.add(reservation, cost, answer.now)
    const wait = { turnAt: answer.now, waitMs: Math.ceil(waited / 1000), lateMs: 0, reservation }
    return {
      decision: new Decision(set, { waited: wait, ...answer }, callerKey, cost),
      storeMs: storeTime / 1000,
    }
  }

  /**
   * @internal Reports the decision about one key of a call on several keys. If a penalty has just blocked the key, the block
   * is copied to the states that the limiter keeps of it under its other lists of policies. Listeners of 'decision' get the
   * event, with the milliseconds that the store took: 0 where this process decided by itself (`isHere`).
   */
  [REPORT_PART](part: LimiterPart, decision: Decision, together: number, storeMs: number): void {
    this.#follow(part, decision)
    if (!this.#events.listeners.heard.decision) return
    this.#events.decided('consume', part.cost, decision, part.isHere ? 0 : storeMs, together)
  }

  /** Copies a block that a decision began to the other lists of its key, and reports the shares of limits that it has crossed. */
  #follow({ set, callerKey, cost }: LimiterPart, decision: Decision): void {
    const answer = decision[ANSWER]
    if (answer.blockedUntil !== undefined) set.sets.spreadBlock(set, callerKey, answer)
    if (set.nearing && decision.charged) set.nearing.charged(set.policies, callerKey, cost, answer)
  }

  /**
   * Charges the cost of a call, 1 unless `options` says otherwise, to the key under every policy, or changes nothing. Resolves to
   * the decision; a denial is a value and is never thrown.
   * @throws {InputError} INVALID_KEY, INVALID_COST. {StoreError} under `onStoreError: 'throw'`.
   */
  consume(key: string, options?: CallOptions): Promise<Decision> {
    try {
      const decision = this.decide(key, options)
      // Not isPromise: after `in` V8 knows that `decision` has no `then`, whose look-up takes 50 ns.
      return 'allowed' in decision ? Promise.resolve(decision) : decision
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Decides as `consume` does, for adapters and hot paths: it returns a promise only if the answer comes from another process,
   * and throws where the call is not valid. `keyspace` is the state that decides. A guarded store elsewhere has `consume`, which
   * returns its answer or hands it to the LaterDecision afterwards, so that a call takes one promise at most; any other store has
   * `decide`. If a penalty has blocked the key (`blockedUntil`), the block is copied to the states that the key has under the
   * limiter's other lists of policies, those of tiers. The decision is reported only while there are listeners.
   */
  decide(key: string, options?: CallOptions): Decision | Promise<Decision> {
    const set = (options === undefined && this.#ownSet) || this.#policySetOf(options?.policies)
    const cost = options === undefined ? 1 : costOf(options)
    const stored = storedKey(key)
    const records = this.#records
    if (records.mayHaveOverrides && records.mayConcern(stored))
      return this.#decideByRecords(set, key, stored, cost)
    const { keyspace } = set
    const reports = this.#events.listeners.heard.decision ? this.#events : undefined
    if (keyspace.consume) {
      const later = new LaterDecision(set, key, cost, reports)
      const answer = keyspace.consume(stored, cost, later)
      return answer ? later.decisionOf(answer, 0) : later.promise()
    }
    const answer = keyspace.decide('consume', stored, cost, 0)
    if (!('at' in answer)) {
      const later = new LaterDecision(set, key, cost, reports)
      return answer.then((known) => later.decisionOf(known))
    }
    const decision = new Decision(set, answer, key, cost)
    if (answer.blockedUntil !== undefined) set.sets.spreadBlock(set, key, answer)
    set.nearing?.charged(set.policies, key, cost, answer)
    reports?.decided('consume', cost, decision, 0)
    return decision
  }

  /**
   * Decides by the override of a key, if it has one in force, once the records are read. As a part of `decide` this would have V8
   * compile calls without an override to slower code: 8 of 73 ns.
   */
  #decideByRecords(
    given: PolicySet,
    key: string,
    stored: string,
    cost: number,
  ): Decision | Promise<Decision> {
    const unread = this[UNREAD]
    if (unread) return unread.then(() => this.#decideByRecords(given, key, stored, cost))
    const set = this.#records.withOverride(given, stored, true)
    const { keyspace } = set
    const reports = this.#events.listeners.heard.decision ? this.#events : undefined
    const later = new LaterDecision(set, key, cost, reports)
    const answer = keyspace.consume?.(stored, cost, later)
    if (keyspace.consume) return answer ? later.decisionOf(answer, 0) : later.promise()
    const decided = keyspace.decide('consume', stored, cost, 0)
    return 'at' in decided ? later.decisionOf(decided, 0) : decided.then((known) => later.decisionOf(known))
  }

  /** The decision that `consume` with these options would make now. Charges nothing, and is not reported to listeners. */
  async peek(key: string, options?: CallOptions): Promise<Decision> {
    const given = this.#policySetOf(options?.policies)
    const [cost, stored] = [costOf(options), storedKey(key)]
    if (this.#records.mayHaveOverrides) await this[UNREAD]
    const set = this.#records.withOverride(given, stored, false)
    const answer = await set.keyspace.decide('peek', stored, cost, 0)
    return new Decision(set, answer, key, undefined)
  }

  /**
   * What `peek` with these options returns, and why: who has blocked or overridden the key, whose numbers decide, and what would
   * let the call pass, as an object and in one sentence. Asks the store as `peek` does, and writes nothing.
   * @throws {InputError} INVALID_KEY, INVALID_COST. {StoreError} under `onStoreError: 'throw'`.
   */
  async explain(key: string, options?: CallOptions): Promise<Explanation> {
    return explain(this.#overridden, this.#policySetOf(options?.policies), key, costOf(options))
  }

  /**
   * Books the earliest turn, first come, first served, and resolves at that turn. If the turn is later than `maxWait` from now,
   * the call is denied at once and nothing is booked. A limiter that reserves books no turns: its calls ask again.
   * @throws {InputError} INVALID_KEY, INVALID_COST, INVALID_DURATION; the signal's reason when it aborts.
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<Decision> {
    const given = this.#policySetOf(options?.policies)
    const checked = options as CheckedOptions
    const areChecked = checked?.[CHECKED] === options
    const { cost, maxWait, [KEY]: checkedKey } = areChecked ? checked : waitOf(options)
    const stored = checkedKey && checkedKey === key ? key : storedKey(key)
    const { mayHaveOverrides } = this.#records
    if (mayHaveOverrides) await this[UNREAD]
    let set = mayHaveOverrides ? this.#records.withOverride(given, stored, true) : given
    const maxWaitUs = maxWait * 1000
    const { nearing } = set
    const booked = nearing && ((answer: Answer) => nearing.charged(set.policies, key, cost, answer))
    const reportingSet = booked ? { ...set, booked } : set
    const { answer, waited, late, storeTime } = this.reserves
      ? await this.#queue.turnByAsking(set, {
          ask: (how, caller) => {
            const inForceNow = this.#records.withOverride(given, stored, true)
            set = inForceNow
            return inForceNow.keyspace.decide(how, stored, cost, 0, caller)
          },
          undo: (late) => giveBack(keyspaceOf(set, late), stored, cost, late),
          charge: 'commit',
          maxWait: maxWaitUs,
          signal: options.signal,
        })
      : await this.#queue.turn(reportingSet, stored, cost, maxWaitUs, options.signal)
    if (this.reserves && set.nearing) booked?.(answer)
    const turnAt = isDenied(answer) ? answer.now : Math.max(answer.now, answer.at)
    const times = { turnAt, waitMs: Math.ceil(waited / 1000), lateMs: Math.floor(late / 1000) }
    const decision = new Decision(set, { waited: times, ...answer }, key, cost)
    if (answer.blockedUntil !== undefined) set.sets.spreadBlock(set, key, answer)
    if (this.#events.listeners.heard.decision)
      this.#report(() => this.#events.decided('acquire', cost, decision, storeTime / 1000), options)
    return decision
  }

  /**
   * Charges the cost of a call as `consume` does, and keeps it as `decision.reservation`: unless that is settled or extended within
   * `ttl`, the store itself gives back all but `atEnd`. Then the next decision of the key counts without it, whatever became of the
   * process. What a gcra, a token bucket or a leaky bucket has drained meanwhile is not given back.
   * @throws {PolicyError} INVALID_OPTION where the limiter was not made with `reservations`; {InputError} INVALID_KEY, INVALID_COST,
   * INVALID_DURATION; the signal's reason when it aborts.
   */
  async reserve(key: string, options: ReserveOptions): Promise<Decision> {
    this.#policySetOf(options?.policies) // throws if the limiter is closed or the list is not valid
    requireReserving(this)
    const terms = reserveOf(options)
    if (this.#records.mayHaveOverrides) await this[UNREAD]
    const part = this[OPEN_PART](key, terms.cost, options.policies)
    const { decision, storeMs } = await this[RESERVE_PART](part, terms, options.signal)
    this.#follow(part, decision)
    if (this.#events.listeners.heard.decision)
      this.#report(() => this.#events.decided('consume', terms.cost, decision, storeMs), options)
    return decision
  }

  /** Returns the reservation of a key by its id; any process may have made it. `options` name the list of policies it was made under. */
  reservation(key: string, id: string, options?: ShapeOptions): Reservation {
    checkShapeOptions(options)
    const given = this.#policySetOf(options?.policies)
    requireReserving(this)
    const reserved = reservedOf(storedKey(key), id)
    return new Reservation(this.#reservationsByOverride(given, reserved.key), reserved, () =>
      this.#storeNow(),
    )
  }

  /** Returns the reservation that a call on one key has made by this answer. One that is denied, but passes, holds nothing. */
  #reservationMade({ set, given, key }: LimiterPart, { id, ttl }: ReserveCall, answer: Answer): Reservation {
    const { degraded } = answer
    // A list with a limit of 0 has no state: it denies every call.
    const hasState = set.keyspace.reservations !== undefined
    const inStore = hasState ? this.#reservationsByOverride(given, key) : undefined
    // In an outage it is as local as the decision, and its end is one of this process's clock.
    const reservations = degraded ? degraded.by?.reservations : inStore
    const now = (): number => (degraded ? this.#store.now() : this.#storeNow())
    const reserved = { key, id, decidedAt: answer.now, end: answer.now + ttl }
    return new Reservation(isDenied(answer) ? undefined : reservations, reserved, now)
  }

  /**
   * Returns what settles or extends reservations of a key that were made under the list `given`. It does so under the override of the
   * key that is in force at that moment, if there is one. A reservation that is settled after its end is warned of.
   */
  #reservationsByOverride(given: PolicySet, key: string): Pick<Reservations, 'change'> {
    const change = async (asked: ReservationChange): Promise<ReservationEffect> => {
      const { mayHaveOverrides } = this.#records
      if (mayHaveOverrides) await this[UNREAD]
      const overridden = mayHaveOverrides ? this.#records.withOverride(given, key, false) : given
      // What was reserved before an exemption or an override of 0 is still in the state under the list itself.
      const isCounted = !overridden.exempt && !(overridden.keyspace instanceof SuspendedKeyspace)
      const { keyspace } = isCounted ? overridden : given
      const { reservations } = keyspace instanceof SuspendedKeyspace ? keyspace.state : keyspace
      const effect = await reservations!.change(asked)
      if (effect.state === 'late' && asked.kind === 'settle' && asked.units > 0) this.warn(...LATE)
      return effect
    }
    return { change }
  }

  /**
   * Reserves, and calls `use` with the reservation, which is extended while `use` runs. A reservation that `use` has not settled is
   * settled at its cost when it returns, and at `atEnd` when it throws. Resolves or rejects as `use` does; where the store fails to
   * settle, the warning SETTLE_FAILED says so.
   * @throws {ReservationDeniedError} RESERVATION_DENIED where the call is denied, and as `reserve`.
   */
  async using<T>(
    key: string,
    options: ReserveOptions,
    use: (reservation: Reservation) => T | PromiseLike<T>,
  ): Promise<T> {
    const decision = await this.reserve(key, options)
    const { reservation } = decision
    if (!reservation) throw new ReservationDeniedError(decision)
    return whileExtended(reservation, options, use, (error) =>
      this.warn('SETTLE_FAILED', `a reservation was not settled by using: ${String(error)}`),
    )
  }

  /**
   * Gives back the newest `cost` units of the key, whichever calls charged them, and at most as many as still count.
   * `decision.settle` gives back only units that its own call charged.
   * @throws {InputError} INVALID_KEY, INVALID_COST.
   */
  refund(key: string, options?: CallOptions): Promise<void> {
    return this.#correctUnits('refund', key, options)
  }

  /**
   * Charges `cost` units now, whether they fit or not. Recorded usage is capped at twice the capacity.
   * @throws {InputError} INVALID_KEY, INVALID_COST.
   */
  charge(key: string, options?: CallOptions): Promise<void> {
    return this.#correctUnits('charge', key, options)
  }

  /** Removes the key's state under every list that `block` reaches: what it consumed, its block and its hold. An override stays. */
  async reset(key: string, options?: ShapeOptions): Promise<void> {
    checkShapeOptions(options)
    await this.#actOnKey({ kind: 'reset', key }, options)
  }

  /**
   * Bans a key: every call on it is denied for `duration`, or until `unblock` or a reset. A number is in milliseconds. The latest
   * block wins.
   *
   * It is written under every list of policies that this limiter knows: `policies`, those of `tiers`, and those that its calls or
   * `options` have brought. A list that only calls of other processes bring has to be one of `tiers`. If it fails under one of
   * the lists, it rejects, and may be called again.
   *
   * If the store keeps records, `overrides()` lists the block, with `reason` and `by`, and it wins over an exemption.
   */
  async block(key: string, duration: Duration, options?: BlockOptions): Promise<void> {
    const us = parseDuration(duration, 'duration') * 1000
    warnIfShort('block', duration)
    checkBlockOptions(options)
    await this.#actOnKey({ kind: 'block', key, duration: us }, options)
  }

  /** Ends the block of the key under every list that `block` reaches. What it consumed, its hold and its refusals stay. */
  async unblock(key: string, options?: ShapeOptions): Promise<void> {
    checkShapeOptions(options)
    await this.#actOnKey({ kind: 'block', key, duration: 0 }, options)
  }

  /**
   * Pauses a key under every list of policies that `block` reaches: for `duration`, `consume` is denied and `acquire` waits. A
   * number is in milliseconds. A hold never shortens a longer one. `overrides()` lists holds that have a `reason` or `by`.
   */
  async hold(key: string, duration: Duration, options?: BlockOptions): Promise<void> {
    const us = parseDuration(duration, 'duration') * 1000
    checkBlockOptions(options)
    await this.#actOnKey({ kind: 'hold', key, duration: us }, options)
  }

  /**
   * Carries out an act on a whole key under every list of policies that the limiter knows, because each may have separate state. A
   * list in `options` is known from then on: `#policySetOf` opens it.
   */
  async #actOnKey(change: KeyAct, options: BlockOptions = {}): Promise<void> {
    const of = this.#overridden
    const hasReasonOrName = (options.reason ?? options.by) !== undefined
    if (hasReasonOrName) recordsOf(of) // throws for a store without records
    this.#policySetOf(options.policies)
    const unread = this.#records.mayHaveOverrides && this[UNREAD]
    if (unread) await unread // so that calls are carried out in their order
    const changeState = (each: KeyAct) => this.#sets.correct({ ...each, key: storedKey(each.key) })
    const endsEarlierAct = change.kind === 'reset' || change.duration === 0
    if (endsEarlierAct) await lift(of, change, changeState)
    else await impose(of, change, options, changeState)
  }

  /**
   * Gives one key another limit until an instant, or none (`exempt`). The override is kept in the store: it is in force here at once,
   * and in every process within two seconds. It wins over the policies of a call, and a block wins over it. What was consumed still
   * counts, but refusals that a penalty has counted are forgotten, under every list that `block` reaches. Another override of the key
   * replaces it.
   * @throws {InputError} INVALID_OVERRIDE, OVERRIDE_LOWERS, TOO_MANY_OVERRIDES, INVALID_OPTION, INVALID_KEY, INVALID_DURATION;
   * {PolicyError} for numbers that do not work, or a store without records; {StoreError}.
   */
  async override(key: string, options: OverrideOptions): Promise<KeyOverride> {
    return override(this.#overridden, key, options)
  }

  /** The overrides of this limiter's keys, and its blocks and holds that have a record, the latest first, as the store has them. */
  async overrides(): Promise<readonly KeyOverride[]> {
    this.#policySetOf(undefined)
    return overrides(this.#overridden)
  }

  /**
   * Ends the override of a key, in every process within two seconds. What was consumed, a block and a hold stay. Of a key without one
   * that is written too, as another process may still know one that the store has dropped.
   */
  async removeOverride(key: string): Promise<void> {
    this.#policySetOf(undefined)
    await this.#records.known?.write({ kind: 'override', limiter: this.name, stored: storedKey(key) })
  }

  /** The policies that it was made with, or those in force if they are a function. */
  get policies(): readonly Policy[] {
    return (this.#ownSet ?? this.#sets.get(this.#policies())).policies
  }

  /** Calls of `acquire` and `reserve` in this process that wait for their turn. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Units that reservations of this process hold: neither settled nor at their end. */
  get held(): number {
    return this.#held?.sum(this.#storeNow()) ?? 0
  }

  /** Whether `close` was called. */
  get isClosed(): boolean {
    return this.#closed
  }

  /** Adds a listener. Returns a function that removes it. */
  on<E extends keyof LimiterEvents>(event: E, listener: Listener<E>, options?: ListenOptions): () => void {
    if (event === 'override') this.#listen()
    return this.#events.listeners.on(event, listener, options)
  }

  /** Reports a likely mistake once per code. For adapters. */
  warn(code: string, message: string, ofProcess?: string): void {
    this.#events.warn(code, message, code, false, ofProcess)
  }

  /**
   * Rejects the calls that wait for their turn and all later calls with StoreError CLOSED, and gives their turns back in the
   * store. It waits at most 30 ms for that, as a store that does not answer must not delay the end of a process. Then it closes
   * the store, if the limiter made it; one that was passed in stays open.
   */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#ownSet = undefined
    this.#records.listeners.delete(this.#heard)
    this.#records.known?.leave()
    await this.#queue.close(closedError('limiter'))
    if (this.#ownsStore) await this.#store.close()
  }

  /** The time on the clock of the store, as far as this process knows it, in microseconds. */
  #storeNow(): number {
    return this.#records.known?.now() ?? this.#store.now()
  }

  /** Reports a decision to the listeners by `report`: now, or where `options` collect reports, when its call gets the answer. */
  #report(report: () => void, options: AcquireOptions): void {
    const { [REPORTS]: reports } = options as Partial<CheckedOptions>
    if (reports) reports.keep(report)
    else report()
  }

  /**
   * Gives units of a key back ('refund'), or charges them whether they fit or not ('charge'), under the override of the key if one is
   * in force, for which the records of operators have to be read once. `nearing` reports charges that use up a share of a limit. A
   * cost of 0 asks no store.
   */
  async #correctUnits(kind: 'refund' | 'charge', key: string, options?: CallOptions): Promise<void> {
    const given = this.#policySetOf(options?.policies)
    const cost = costOf(options)
    const stored = storedKey(key)
    const unread = this.#records.mayHaveOverrides && this[UNREAD]
    if (unread) await unread
    const { keyspace, nearing } = this.#records.withOverride(given, stored, kind === 'charge')
    if (nearing && kind === 'charge' && cost > 0) await nearing.charge(keyspace, key, cost)
    else if (cost > 0) await keyspace.correct({ kind, key: stored, cost })
  }

  /** The parts of this limiter that overrides (other limits of single keys) need; `own` returns the policies that it was made with. */
  get #overridden(): OverriddenLimiter {
    return {
      name: this.name,
      records: this.#records,
      leaseMs: this.#leaseMs,
      own: () => this.#policySetOf(undefined),
    }
  }

  /**
   * Starts to report changes of records, from the first read on, which begins now.
   * @throws {PolicyError} INVALID_OPTION for a store without records.
   */
  #listen(): void {
    const known = recordsOf(this.#overridden)
    this.#records.listeners.add(this.#heard)
    known.untilFirstRead()?.catch(() => {})
  }

  /** Reports what has become of a record. */
  readonly #heard: RecordListener = (change, record) => {
    if (this.#closed) return
    const { key } = record.content
    const type = 'override' as const
    const event = { type, limiter: this.name, key, change, record: recordShown(record, this.#overridden) }
    this.#events.listeners.emit(type, event)
  }

  /**
   * The set of a call: the list of policies that its options name, checked and opened, or the limiter's own.
   * @throws {StoreError} CLOSED; PolicyError for a list that is not valid.
   */
  #policySetOf(policies: readonly Policy[] | undefined): PolicySet {
    if (this.#closed) throw closedError('limiter')
    if (policies !== undefined) return this.#sets.get(policies, 'plan')
    if (this.#ownSet) return this.#ownSet
    const list = this.#policies()
    if (list !== this.#lastList) this.#lastSet = this.#sets.get(list, 'default')
    this.#lastList = list
    if (this.#forgetOwnSet) this.#ownSet = this.#lastSet
    return this.#lastSet
  }
}

const LATE = [
  'RESERVATION_LATE',
  'a reservation was settled after its end, or after the store had lost it: its real cost was charged beside what others have got since',
] as const
const NO_WINDOW = 'nearing needs a calendarWindow or fixedWindow in each list: others have no end'

/**
 * The decision of a keyspace that is elsewhere, and the one promise of the call: a keyspace with `consume` answers through a
 * callback. The decision is reported, if that is wanted, before the caller gets it.
 */
class LaterDecision implements Receiver<Answer> {
  #sentAt = 0
  #resolve!: (outcome: Decision | Answer) => void
  #reject!: (error: unknown) => void

  /**
   * Prepares the decision of a call on `key` under the policies of `set`, which may be answered later. `reports` are the limiter's
   * events if it has listeners of decisions, otherwise undefined; the wait for the answer is measured for them alone. `isHeard`:
   * listeners, of decisions or of 'nearing', will be called.
   */
  constructor(
    readonly set: PolicySet,
    readonly key: string,
    readonly cost: number,
    readonly reports: Events | undefined,
    readonly isHeard = (reports ?? set.nearing) !== undefined,
  ) {
    if (reports) this.#sentAt = performance.now()
  }

  /**
   * Returns the promise of the decision, which `answered` or `failed` settles; to be called before there is an answer. Answers come
   * in the AsyncLocalStorage context of the call that sent the batch. If there are listeners, the decision is therefore made in a
   * `then`, which runs in the context of this call.
   */
  promise(): Promise<Decision> {
    const outcome = new Promise<Decision | Answer>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const made = this.isHeard ? outcome.then((answer) => this.decisionOf(answer as Answer)) : outcome
    return made as Promise<Decision>
  }

  /** Receives the answer: resolves the promise with it, to be made a decision there (`isHeard`), or with its decision. */
  answered(answer: Answer): void {
    try {
      this.#resolve(this.isHeard ? answer : this.decisionOf(answer))
    } catch (error) {
      this.#reject(error)
    }
  }

  /** Rejects the promise with the error that the store, or the failure mode, has ended the call with. */
  failed(error: unknown): void {
    this.#reject(error)
  }

  /**
   * Makes the decision of an answer, and reports it to listeners with `storeMs`, the milliseconds that the call has waited, by
   * default since it was made. If a penalty has blocked the key (`blockedUntil`), the block is copied to the states that the key has
   * under the limiter's other lists of policies.
   */
  decisionOf(answer: Answer, storeMs?: number): Decision {
    const { set, key, cost } = this
    const decision = new Decision(set, answer, key, cost)
    if (answer.blockedUntil !== undefined) set.sets.spreadBlock(set, key, answer)
    set.nearing?.charged(set.policies, key, cost, answer)
    this.reports?.decided('consume', cost, decision, storeMs ?? performance.now() - this.#sentAt)
    return decision
  }
}
