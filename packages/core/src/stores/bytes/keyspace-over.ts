import type { Policy } from '../../algorithms/contract/policy.js'
import { WeakValues } from '../../values/weak-values.js'
import type { PolicyList } from '../memory/policy-lists.js'
import type { ReservingKeyspace } from '../memory/reserving-keyspace.js'
import type { Penalty } from '../penalty.js'
import { RESERVING, type ReservationSettings } from '../reservations.js'
import type { Answer, Ask, Booking, Caller, Correction, Keyspace } from '../store.js'
import type { MaybePromise, Part, Report, Reservations, Together } from '../store.js'
import { decideAtOnce } from '../together.js'
import { type Act, type Change, type Gathering, gatheringOf } from './gathering.js'
import { KEY, ScratchTable } from './scratch-table.js'
import { bytesOf, isSound, keptByCalendars, type KeptState, stateOf } from './state-bytes.js'
import type { Updates } from './updates.js'

/**
 * A keyspace over state that a store keeps as bytes, for stores that have no code of their own to decide: every operation is
 * one update, which the process decides as `memoryStore` does. Calls of one key that meet go together in one update. The state
 * of a key takes about 100 bytes; 8 more for each slot or bucket, and for each entry of a sliding log.
 *
 * Pass the same `updates` for all keyspaces of a store: calls go together by it. With `{ updateMany }` calls of several keys go
 * together too, and `consumeAll` is one atomic step.
 * @example
 * import { keyspaceOver, type Store, type Update } from '@sluice/core/store'
 * const states = new Map<string, Uint8Array>()
 * const now = () => Math.floor(performance.now() * 1000)
 * const update: Update = (id, change) => {
 *   const { result, state } = change(states.get(id), now())
 *   if (state) states.set(id, state)
 *   else states.delete(id)
 *   return result
 * }
 * const store: Store = {
 *   local: true,
 *   keyspace: (...limiter) => keyspaceOver(update, ...limiter),
 *   now,
 *   close() {},
 * }
 */
export function keyspaceOver(
  updates: Updates,
  name: string,
  policies: readonly Policy[],
  report: Report,
  ...terms: readonly [penalty?: Penalty, reservations?: ReservationSettings]
): Keyspace {
  return new KeyspaceOver(updates, name, policies, report, terms)
}

/** A booking that knows the state which it was made in, and what was there before. */
interface KeptBooking extends Booking {
  readonly epoch: number
  readonly version: number
  readonly before: KeptState
}

class KeyspaceOver implements Keyspace {
  readonly penalty: Penalty | undefined
  readonly #idPrefix: string
  /**
   * While the clock stands less than `#longestMovingWindow` behind the last write, time stands still. Windows of a calendar have a stored end, so
   * they do not need that. A state whose last write is `#keptFor` or more ahead of the clock is discarded.
   */
  readonly #longestMovingWindow: number
  readonly #keptFor: number
  readonly #gathering: Gathering
  readonly #table: ScratchTable
  readonly #list: PolicyList
  readonly #reserving: ReservingKeyspace | undefined
  readonly #cancelled = new WeakSet<Booking>()

  /**
   * Opens the state of the limiter `name` under these policies. `#idPrefix` begins the ids under which the store keeps the bytes of
   * keys. `#table`, into which the bytes of a key are loaded to decide a call, is shared by keyspaces of one name whose policies have
   * the same shapes (algorithms and windows). `#gathering` sends the calls of all keyspaces over the same `updates` together.
   * `#list` is the list of policies as the table knows it, and `#reserving` decides there for a limiter with reservations. `#keptFor`
   * and `#longestMovingWindow` bound, in microseconds, by how much a clock may be set back before state is dropped.
   */
  constructor(
    updates: Updates,
    name: string,
    readonly policies: readonly Policy[],
    readonly report: Report,
    [penalty, reservations]: readonly [penalty?: Penalty, reservations?: ReservationSettings],
  ) {
    this.penalty = penalty
    // A JSON array shows by itself where it ends and the key behind it begins, so different names, shapes or keys have other ids.
    const suffix = reservations ? [RESERVING] : []
    this.#idPrefix = JSON.stringify([name, ...policies.map(({ shape }) => shape), ...suffix])
    const longest = Math.max(...policies.map(({ window }) => window))
    this.#longestMovingWindow = Math.max(
      0,
      ...policies.map(({ calendar, window }) => (calendar ? 0 : window)),
    )
    this.#keptFor = policies.some(({ calendar }) => calendar) ? 2 * longest : longest
    this.#gathering = gatheringOf(updates)
    const tables = TABLES.get(this.#gathering) ?? new WeakValues()
    TABLES.set(this.#gathering, tables)
    this.#table = tables.get(this.#idPrefix, () => new ScratchTable(policies, reservations !== undefined))
    this.#list = this.#table.openList(policies, penalty)
    this.#reserving = reservations && this.#table.reserving(this.#list, reservations.max)
  }

  /**
   * What makes reservations (charges that are settled later), and settles or extends them; undefined for a limiter that does not
   * reserve. Each is done by one update of the key's bytes: they are loaded into the table, `#reserving` decides there, and they are
   * written if that changed something, which an `epoch` and a `version` in the result say.
   */
  get reservations(): Reservations | undefined {
    const reserving = this.#reserving
    if (!reserving) return undefined
    return {
      reserve: (call, caller) => {
        const reserve = (): Answer =>
          this.#table.withNextUnit(reserving.reserve({ ...call, key: KEY }), reserving)
        return this.#gathering.run(
          [this.#idPrefix + call.key],
          this.#decisionAct('consume', call.key, call.cost, 0, reserve),
          caller,
        )
      },
      change: (change, caller) =>
        this.#change(change.key, caller, (state) => {
          const result = reserving.change({ ...change, key: KEY })
          const isCharged = change.kind === 'settle' && change.units > 0
          const isWritten = isCharged || result.state !== 'late'
          return isWritten ? { result, epoch: state?.epoch ?? random(), version: random() } : { result }
        }),
    }
  }

  /**
   * The means to decide a call on several keys in one atomic update; undefined where the store changes one key at a time. Calls can
   * go together if their keyspaces have the same `program`: here that is the gathering, which all keyspaces over the same `updates`
   * share.
   */
  get together(): Together | undefined {
    const gathering = this.#gathering
    if (!gathering.takesMany) return undefined
    /**
     * Decides the parts, each a key with its cost, in one update of all their ids. The update carries out `act`, which decides each
     * part by a stand-in for its keyspace. That answers at once, as the bytes of all parts are there while the update runs. The
     * answers come as a promise, so no receiver is needed.
     */
    const decide: Together['decide'] = (given, _receiver, caller) => {
      const parts = given as readonly Part<KeyspaceOver>[]
      const ids = parts.map(({ keyspace, key }) => keyspace.#idPrefix + key)
      const act: Act<readonly Answer[]> = (changing) =>
        decideAtOnce(parts.map((part) => ({ ...part, keyspace: part.keyspace.#within(changing) })))
      return gathering.run(ids, act, caller)
    }
    return { program: gathering, decide }
  }

  /**
   * Returns a stand-in for this keyspace inside of an update, by whose function `changing` the bytes of its keys are read and
   * replaced. So it answers at once, while the keyspace itself would begin an update of its own.
   */
  #within(changing: Parameters<Act<Answer>>[0]) {
    const decide = (ask: Ask, key: string, cost: number) => this.#decisionAct(ask, key, cost, 0)(changing)
    return { decide }
  }

  /**
   * Decides a call of `cost` units on a key, in an update of that key's bytes. A booking waits at most `maxWait` microseconds.
   * Returns the answer, or a promise of it where the update returns one.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    return this.#gathering.run([this.#idPrefix + key], this.#decisionAct(ask, key, cost, maxWait), caller)
  }

  /**
   * Makes the act that decides a call on a key whose state is loaded. The state is written, for which the result has an epoch and
   * a version, in three cases only: the call was charged, its refusal is counted by the penalty, or the key is refused for longer
   * than its state would be kept. Reads (`peek`, or a cost of 0) and other denials write nothing. The epoch is a random number
   * drawn when state begins anew, the version one drawn for each charge. A booking keeps both, and the state before it: they tell
   * later whether its state is gone (another epoch) or its units were changed since (another version), and what to restore if
   * neither. A charge on a key that had no state gets no booking, and can only be released.
   */
  #decisionAct(
    ask: Ask,
    key: string,
    cost: number,
    maxWait: number,
    decide = (): Answer => this.#table.decide(this.#reserving ?? this.#list, ask, cost, maxWait),
  ): Act<Answer> {
    return this.#actOn<Answer>(key, (before, now, time) => {
      const decided = decide()
      // A caller who waits also waits until a clock that was set back has caught up.
      const answer = decided.at > now ? { ...decided, now: time } : decided
      const isAsked = cost > 0 && ask !== 'peek'
      const isCharged = isAsked && ask !== 'try' && answer.reason === undefined
      const isRefused = isAsked && ask !== 'commit' && answer.reason !== undefined
      const isCounted = isRefused && answer.reason === 'limit' && this.penalty !== undefined
      // A limit smaller than those of the writes before refuses the key for longer than its state is kept.
      const isOutlived = isRefused && before !== undefined && this.#table.expiresAt > before.expiresAt
      if (!isCharged && !isCounted && !isOutlived) return { result: answer }
      // A block that ends with a full allowance has begun: the bookings of before are lost.
      const isAnew = isCounted && this.penalty.then === 'fresh' && this.#table.isBlocked
      const epoch = isAnew || !before ? random() : before.epoch
      const version = isCharged || isAnew || !before ? random() : before.version
      const kept = answer.booking && before && { ...answer.booking, key, epoch, version, before }
      return { result: answer.booking ? { ...answer, booking: kept } : answer, epoch, version }
    })
  }

  /**
   * Returns how a booking stands at its turn: 'lost' if the state that it was made in is gone, as another epoch shows (a random
   * number of state begun anew); 'held' if the key is blocked or held now; otherwise 'stands'.
   */
  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    const { key, epoch } = booking as KeptBooking
    return this.#change<'stands' | 'lost' | 'held'>(key, undefined, (state, now) => {
      if (state?.epoch !== epoch) return { result: 'lost' }
      return { result: Math.max(state.blockedUntil, state.heldUntil) > now ? 'held' : 'stands' }
    })
  }

  /**
   * Cancels a booking, once. If nothing has charged the key since (its `version`, random for each charge, is still the booking's),
   * the state of before is restored, and the result is true. Otherwise the units that still count are released, if the state is not
   * gone, and the result is false. A block, a hold or refusals that came since stay either way.
   */
  cancel(booking: Booking): MaybePromise<boolean> {
    if (this.#cancelled.has(booking)) return false
    this.#cancelled.add(booking)
    const { key, cost, epoch, version, before } = booking as KeptBooking
    return this.#change<boolean>(key, undefined, (state, now) => {
      if (state?.epoch !== epoch) return { result: false }
      if (state.version !== version) {
        this.#table.correct(this.#list, { kind: 'release', key, charge: booking, units: cost })
        return { result: false, epoch, version: random() }
      }
      // The block, the hold and the refusals are none of the booking's.
      const { blockedUntil, heldUntil, refusals, forgottenAt } = state
      this.#table.load({ ...before, blockedUntil, heldUntil, refusals, forgottenAt }, now)
      return { result: true, epoch, version: before.version }
    })
  }

  /**
   * Applies a correction to a key and returns the units that took effect, 0 for a change without units. A key without state is given
   * one only by a charge, a block or a hold. A release gives nothing back if the state does not hold its charge: it began after the
   * charge was decided, or was last written before, as where the clock was set back.
   */
  correct(change: Correction, caller?: Caller): MaybePromise<number> {
    return this.#change(change.key, caller, (state) => {
      const { kind } = change
      if (kind === 'reset') return { result: 0, isReset: true }
      const isUnblock = kind === 'block' && change.duration === 0
      if (!state && (isUnblock || kind === 'refund' || kind === 'release')) return { result: 0 }
      if (state && kind === 'release') {
        const { decidedAt } = change.charge
        if (decidedAt < this.#table.born || decidedAt > state.written) return { result: 0 }
      }
      const result = this.#table.correct(this.#list, change)
      const isAboutUnits = kind !== 'block' && kind !== 'hold'
      const version = isAboutUnits || !state ? random() : state.version
      return { result, epoch: state?.epoch ?? random(), version }
    })
  }

  /** Carries out `operate` on the state of `key`, in an update of its bytes, and returns its result. */
  #change<T>(key: string, caller: Caller | undefined, operate: Operate<T>): MaybePromise<T> {
    return this.#gathering.run([this.#idPrefix + key], this.#actOn(key, operate), caller)
  }

  /**
   * Makes the act that loads the bytes of `key` into the table, has `operate` decide or correct there, and returns the new bytes if
   * `operate` has written, which an epoch and a version in its result say. `operate` gets the state, or undefined for a key without
   * one or with unreadable bytes, which are reported as healed once they are written over. It also gets two instants in
   * microseconds: `now`, which lies before no write while time stands still, and `time`, what the clock says.
   */
  #actOn<T>(key: string, operate: Operate<T>): Act<T> {
    const change: Change<T> = (bytes, clock) => {
      const time = Math.floor(clock) // an instant that is not whole would make state that is not sound
      const state = bytes && this.#read(bytes, time)
      const now = this.#longestMovingWindow > 0 ? Math.max(time, state?.written ?? 0) : time
      this.#table.load(state, now)
      // An operation that writes nothing leaves what has ended to the next one.
      this.#reserving?.giveBackEnded(KEY)
      const { result, isReset = false, epoch, version } = operate(state, now, time)
      if (isReset) return { result, state: undefined, expiresAt: now }
      if (epoch === undefined || version === undefined) return { result, state: bytes, expiresAt: Infinity }
      if (bytes && !state) this.report({ event: 'healed', key })
      const after = this.#table.save(epoch, version, state?.expiresAt ?? 0)
      return { result, state: bytesOf(after), expiresAt: after.expiresAt }
    }
    return (changing) => changing(this.#idPrefix + key, change)
  }

  /**
   * Reads the state of a key from its bytes. If the last write lies far ahead of `time` (microseconds), the clock was set back since,
   * and no caller is to be locked out until it has caught up: what is left is what calendars keep, and from `#keptFor` on undefined.
   * Undefined, too, for bytes that no call can have written.
   */
  #read(bytes: Uint8Array, time: number): KeptState | undefined {
    const state = stateOf(bytes, this.#table.layout)
    const behind = state ? state.written - time : 0
    if (!state || behind >= this.#keptFor || !isSound(state, this.policies)) return undefined
    return behind > 0 && behind >= this.#longestMovingWindow
      ? keptByCalendars(state, this.policies, time)
      : state
  }
}

type Operate<T> = (state: KeptState | undefined, now: number, time: number) => Operated<T>

/** An operation that was carried out: with an epoch and a version it has written. */
interface Operated<T> {
  readonly result: T
  readonly isReset?: boolean
  readonly epoch?: number
  readonly version?: number
}

function random(): number {
  return Math.floor(Math.random() * 2 ** 52)
}

/** The tables over the same updates by their shapes. */
const TABLES = new WeakMap<Gathering, WeakValues<ScratchTable>>()
