import type { Policy } from '../../algorithms/contract/policy.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Booking, Correction, Keyspace, MaybePromise, Report } from '../store.js'
import type { PolicyList } from '../memory/policy-lists.js'
import { type ScratchTable, scratchTableOf } from './scratch-table.js'
import { bytesOf, isSound, type KeptState, stateOf } from './state-bytes.js'

/** The outcome of an operation on the state of a key. */
export interface StateChange<T> {
  /** The result of the operation, which `Update` hands on. */
  readonly result: T
  /** The state from now on: the very bytes that were given if nothing was written, undefined to delete the key. */
  readonly state: Uint8Array | undefined
  /** The instant after which the state may be dropped, in microseconds on the store's clock. */
  readonly expiresAt: number
}

/**
 * Changes the state of one key in one atomic step: reads the bytes that are kept under `id`, calls `change` with them and the
 * instant, and keeps what it returns. `id` is made of the limiter's name, the shapes of the policies, and the key.
 * - No other update of this id may run in between: lock the id, or compare before writing and begin again; `change` may be
 *   called repeatedly.
 * - `now` is in whole microseconds on the clock that all processes with this state share. If it stands behind the latest
 *   write by less than the longest window, the time of that write counts.
 * - If it fails, it rejects with StoreError. A store that sets `local` returns at once and never fails.
 */
export type Update = <T>(
  id: string,
  change: (state: Uint8Array | undefined, now: number) => StateChange<T>,
) => MaybePromise<T>

/**
 * A keyspace over state that a store keeps as bytes, for stores that have no code of their own to decide: every operation is
 * one update, which the process decides as `memoryStore` does. The state of a key takes about 100 bytes; 8 more for each slot
 * or bucket, and for each entry of a sliding log.
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
 *   keyspace: (name, policies, report, penalty) => keyspaceOver(update, name, policies, report, penalty),
 *   now,
 *   close() {},
 * }
 */
export function keyspaceOver(
  update: Update,
  name: string,
  policies: readonly Policy[],
  report: Report,
  penalty?: Penalty,
): Keyspace {
  return new KeyspaceOver(update, name, policies, report, penalty)
}

/** A booking that knows the state which it was made in, and what was there before. */
interface KeptBooking extends Booking {
  readonly epoch: number
  readonly version: number
  readonly before: KeptState
}

class KeyspaceOver implements Keyspace {
  readonly #idPrefix: string
  readonly #longestWindow: number
  readonly #table: ScratchTable
  readonly #list: PolicyList
  readonly #cancelled = new WeakSet<Booking>()

  constructor(
    readonly update: Update,
    name: string,
    readonly policies: readonly Policy[],
    readonly report: Report,
    readonly penalty: Penalty | undefined,
  ) {
    // The end of a JSON array is found without its beginning, so no two lists and keys have one id.
    this.#idPrefix = JSON.stringify([name, ...policies.map(({ shape }) => shape)])
    this.#longestWindow = Math.max(...policies.map(({ window }) => window))
    this.#table = scratchTableOf(update, this.#idPrefix, policies)
    this.#list = this.#table.listOf(policies, penalty)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number): MaybePromise<Answer> {
    return this.#change<Answer>(key, (before) => {
      const { booking, ...answer } = this.#table.decide(this.#list, ask, cost, maxWait)
      const isAsked = cost > 0 && ask !== 'peek'
      const isCharged = isAsked && answer.reason === undefined
      const isRefused = isAsked && answer.reason !== undefined
      const isCounted = isRefused && answer.reason === 'limit' && this.penalty !== undefined
      // A limit smaller than those of the writes before refuses the key for longer than its state is kept.
      const isOutlived = isRefused && before !== undefined && this.#table.expiresAt > before.expiresAt
      if (!isCharged && !isCounted && !isOutlived) return { result: { ...answer, booking } }
      const epoch = before?.epoch ?? random()
      const version = isCharged || !before ? random() : before.version
      const own = booking && before && { ...booking, key, epoch, version, before }
      return { result: { ...answer, booking: own }, epoch, version }
    })
  }

  confirm(booking: Booking): MaybePromise<'stands' | 'lost' | 'held'> {
    const { key, epoch } = booking as KeptBooking
    return this.#change<'stands' | 'lost' | 'held'>(key, (state, now) => {
      if (state?.epoch !== epoch) return { result: 'lost' }
      return { result: Math.max(state.blockedUntil, state.heldUntil) > now ? 'held' : 'stands' }
    })
  }

  cancel(booking: Booking): MaybePromise<boolean> {
    if (this.#cancelled.has(booking)) return false
    this.#cancelled.add(booking)
    const { key, cost, epoch, version, before } = booking as KeptBooking
    return this.#change<boolean>(key, (state, now) => {
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

  correct(change: Correction): MaybePromise<number> {
    return this.#change(change.key, (state) => {
      const { kind } = change
      if (kind === 'reset') return { result: 0, isReset: true }
      const isGivenBack = kind === 'refund' || kind === 'release'
      const isOthers = kind === 'release' && change.charge.decidedAt < this.#table.born
      if (isGivenBack && (!state || isOthers)) return { result: 0 }
      const result = this.#table.correct(this.#list, change)
      const isAboutUnits = kind !== 'block' && kind !== 'hold'
      const version = isAboutUnits || !state ? random() : state.version
      return { result, epoch: state?.epoch ?? random(), version }
    })
  }

  /** One update: loads the state of `key` into the table, operates on it there, and saves it if it was written. */
  #change<T>(
    key: string,
    operate: (state: KeptState | undefined, now: number) => Operated<T>,
  ): MaybePromise<T> {
    return this.update<T>(this.#idPrefix + key, (bytes, clock) => {
      const time = Math.floor(clock) // an instant that is not whole would make state that is not sound
      const state = bytes && this.#read(bytes, time)
      const now = Math.max(time, state?.written ?? 0)
      this.#table.load(state, now)
      const { result, isReset = false, epoch, version } = operate(state, now)
      if (isReset) return { result, state: undefined, expiresAt: now }
      if (epoch === undefined || version === undefined) return { result, state: bytes, expiresAt: Infinity }
      if (bytes && !state) this.report({ event: 'healed', key })
      const after = this.#table.save(epoch, version, state?.expiresAt ?? 0)
      return { result, state: bytesOf(after), expiresAt: after.expiresAt }
    })
  }

  /** Undefined, too, for state of a clock that was set back: no caller is locked out for longer than a window. */
  #read(bytes: Uint8Array, time: number): KeptState | undefined {
    const state = stateOf(bytes, this.#table.layout)
    const isCurrent = state && state.written - time < this.#longestWindow
    return isCurrent && isSound(state, this.policies) ? state : undefined
  }
}

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
