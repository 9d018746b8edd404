import { StoreError } from '../../values/errors.js'
import type { Caller, MaybePromise, Receiver } from '../store.js'
import type { NewState, StateChange, Updates } from './updates.js'

/** The change of a call to the states of its ids. It may be carried out repeatedly, and only the last time counts. */
export type Act<T> = (change: <R>(id: string, change: Change<R>) => R) => T
export type Change<R> = (state: Uint8Array | undefined, now: number) => StateChange<R>

/**
 * Returns the gathering of these `updates`, the functions by which a store changes the state of its ids, and makes it if there is
 * none. All keyspaces that share the `updates` share it, so that calls of different limiters go together in an update.
 */
export function gatheringOf(updates: Updates): Gathering {
  const known = GATHERINGS.get(updates) ?? new Gathering(updates)
  GATHERINGS.set(updates, known)
  return known
}

const GATHERINGS = new WeakMap<Updates, Gathering>()

/**
 * The updates of one process, at most one of an id at a time. Calls that come while their id is being updated go together in
 * the next update, in order, each with its own answer: n calls of one key at once cost two updates. If each had an update of
 * its own, all but one would lose the race and begin again, so that n calls would cost about n * n / 2.
 */
export class Gathering {
  /** Calls that are not sent, the oldest first. */
  #waiting: GatheredCall<unknown>[] = []
  /** The updates that are under way, by their ids: the instants at which they were sent. */
  readonly #updates = new Map<ReadonlySet<string>, number>()
  readonly #busyIds = new Set<string>()
  #isDue = false

  constructor(readonly updates: Updates) {}

  /**
   * Whether a call may have several ids, which are changed in one atomic step: the store gave `updateMany`, and not a function
   * for one id.
   */
  get takesMany(): boolean {
    return typeof this.updates !== 'function'
  }

  /**
   * Carries out `act`, a change of the states of these ids, and returns its result, or a promise if the store's update returns one.
   * If one update may hold many ids, or an update of this id is under way, the call waits, to go together with others in the next.
   * `act` may be carried out several times, as another process may be faster to write; only the last time counts. `caller` says
   * whether somebody still waits for the result.
   */
  run<T>(ids: readonly string[], act: Act<T>, caller?: Caller): MaybePromise<T> {
    const call = new GatheredCall<T>(ids, act, caller)
    if (this.takesMany || this.#busyIds.has(ids[0]!)) this.#enqueue(call)
    else {
      const update = this.#update([call])
      const hasEnded = Array.isArray(update)
      if (hasEnded) return call.outcome()
      this.#follow([call], update as Promise<readonly string[]>)
    }
    return new Promise((answered, failed) => (call.receiver = { answered, failed }))
  }

  /**
   * Puts a call into the queue of those that wait to be sent. They are sent at the end of this turn of the event loop (a
   * microtask), so that the calls of one turn go together in an update. Until then the call counts as queued: if its deadline
   * passes meanwhile, it was surely not carried out.
   */
  #enqueue(call: GatheredCall<unknown>): void {
    call.caller?.queued?.(true)
    this.#waiting.push(call)
    if (!this.#isDue) queueMicrotask(() => this.#sendWaiting())
    this.#isDue = true
  }

  /**
   * Sends the calls that wait, in as many updates as may be under way at once. Before that, an update without an outcome for a
   * minute (LOST_MS) counts as ended: otherwise it would hold its ids for ever.
   */
  #sendWaiting(): void {
    this.#isDue = false
    for (const [ids, since] of this.#updates) if (performance.now() - since > LOST_MS) this.#freeIds(ids)
    for (let calls = this.#takeCalls(); calls.length > 0; calls = this.#takeCalls()) {
      this.#follow(calls, new Promise((resolve) => resolve(this.#update(calls))))
    }
  }

  /**
   * Takes the calls for the next update out of the queue; none if enough updates are under way. A call fits if none of its ids is in
   * another update and the update has room for the ids that it adds. Calls on several keys go apart from those on one, because the
   * whole update is undone if one of their ids loses a race. A call that does not fit keeps later calls on its ids behind it, so that
   * calls on an id are carried out in order. Calls whose caller is gone are failed and left out.
   */
  #takeCalls(): readonly GatheredCall<unknown>[] {
    const most = this.takesMany ? MANY : ONE
    if (this.#updates.size >= most.updates) return []
    const [takenIds, blockedIds] = [new Set<string>(), new Set(this.#busyIds)]
    const [taken, waiting]: [GatheredCall<unknown>[], GatheredCall<unknown>[]] = [[], []]
    const isOfSameSort = ({ ids }: GatheredCall<unknown>): boolean =>
      ids.length > 1 === (taken[0]?.ids ?? ids).length > 1
    for (const call of this.#waiting) {
      if (call.caller?.gone) {
        call.settle(leftOut)
        continue
      }
      const fits =
        isOfSameSort(call) &&
        call.ids.every((id) => !blockedIds.has(id) && (takenIds.has(id) || takenIds.size < most.ids))
      for (const id of call.ids) (fits ? takenIds : blockedIds).add(id)
      ;(fits ? taken : waiting).push(call)
    }
    this.#waiting = waiting
    return taken
  }

  /**
   * Sends one update for the ids of these calls. Within it each call changes the states as the calls before it have left them.
   * Returns the ids that another process was faster to write: nothing was kept of them, and their calls are to be carried out
   * again. All ids are written or none if a call has several.
   */
  #update(calls: readonly GatheredCall<unknown>[]): MaybePromise<readonly string[]> {
    const { updates } = this
    const ids = [...idsOf(calls)]
    for (const { caller } of calls) caller?.queued?.(false)
    /**
     * Makes the new states, in the order of `ids`, from the states `before`, by carrying out all calls one after the other at the
     * instant `now`. The store calls this within the update, and again if another process was faster to write. A state that no
     * call changes is returned as it was given, so it is not written; its `expiresAt` is not used then.
     */
    const change = (before: readonly (Uint8Array | undefined)[], now: number): readonly NewState[] => {
      const states = new Map(ids.map((id, i) => [id, { state: before[i], expiresAt: Infinity }]))
      for (const call of calls) call.carryOut(states, now)
      return [...states.values()]
    }
    if (typeof updates === 'function')
      return updates(ids[0]!, (state, now) => ({ ...change([state], now)[0]!, result: NONE }))
    return updates.updateMany(ids, change, { allOrNone: calls[0]!.ids.length > 1 })
  }

  /**
   * Waits for the update of these calls to end, and keeps their ids out of any other update until then. Calls on a lost id (another
   * process was faster to write it) then go back to the front of the queue, MOST_TRIES times at most; the others get their answers,
   * or the error of the update. Then the calls that wait are sent.
   */
  #follow(calls: readonly GatheredCall<unknown>[], update: Promise<readonly string[]>): void {
    const busy = idsOf(calls)
    this.#updates.set(busy, performance.now())
    for (const id of busy) this.#busyIds.add(id)
    /** Ends the update, some ids of which may be lost. Without a `failure` of the update each call has an outcome of its own. */
    const end = (lostIds: readonly string[], failure?: () => never): void => {
      const lost = new Set(lostIds)
      const isLost = (call: GatheredCall<unknown>): boolean => call.ids.some((id) => lost.has(id))
      const toRepeat = calls.filter((call) => isLost(call) && ++call.tries < MOST_TRIES)
      this.#freeIds(busy)
      this.#waiting.unshift(...toRepeat)
      for (const call of calls) {
        if (toRepeat.includes(call)) continue
        const wasInVain = call.tries >= MOST_TRIES
        call.settle(wasInVain ? unkept : failure)
      }
      this.#sendWaiting()
    }
    Promise.resolve(update).then(end, (error: unknown) => end(NONE, () => fail(error)))
  }

  /** Ends an update: other calls may change its ids again. Does nothing if that update was taken as ended before. */
  #freeIds(ids: ReadonlySet<string>): void {
    if (this.#updates.delete(ids)) for (const id of ids) this.#busyIds.delete(id)
  }
}

/** The ids that any of these calls changes, each once. */
function idsOf(calls: readonly GatheredCall<unknown>[]): Set<string> {
  return new Set(calls.flatMap(({ ids }) => ids))
}

/** A call that goes in an update together with others. */
class GatheredCall<T> {
  /** Set before there is an outcome for it. */
  receiver: Receiver<T> | undefined
  outcome: () => T = leftOut
  /** How often it was carried out and nothing of it was kept. */
  tries = 0

  /**
   * A call that is sent with others in one update of the store: `act` changes the states of these `ids`. The `caller` may be gone
   * before the call is sent, which is then left out.
   */
  constructor(
    readonly ids: readonly string[],
    readonly act: Act<T>,
    readonly caller: Caller | undefined,
  ) {}

  /**
   * Carries the call out on `states`, the states by id as the earlier calls of the update have left them, at the instant `now`,
   * and notes its outcome. A call whose caller is gone is left out. One that throws changes nothing and fails alone. Where the
   * change returns the very bytes that it got, nothing is to be written.
   */
  carryOut(states: Map<string, NewState>, now: number): void {
    this.outcome = leftOut
    if (this.caller?.gone) return
    const before = this.ids.map((id) => states.get(id)!)
    try {
      const result = this.act((id, change) => {
        const after = change(states.get(id)!.state, now)
        if (after.state !== states.get(id)!.state) states.set(id, after)
        return after.result
      })
      this.outcome = () => result
    } catch (error) {
      for (const [i, id] of this.ids.entries()) states.set(id, before[i]!)
      this.outcome = () => fail(error)
    }
  }

  /**
   * Passes the outcome to the receiver of this call: what `outcome` returns, or the error that it throws. Its default is the
   * outcome that the call itself had; the update's own failure comes in its place.
   */
  settle(outcome = this.outcome): void {
    try {
      this.receiver!.answered(outcome())
    } catch (error) {
      this.receiver!.failed(error)
    }
  }
}

/** Throws the error of a call that was never carried out because its caller had given up. */
function leftOut(): never {
  throw new StoreError('STORE_TIMEOUT', 'the caller gave up before it was carried out', { sent: false })
}

/** Throws the error of a call that was carried out MOST_TRIES times in vain. */
function unkept(): never {
  const what = `nothing was kept of a call in ${MOST_TRIES} tries: a trigger drops what is written, or too many write its key`
  throw new StoreError('STORE_ERROR', what, { sent: false })
}

function fail(error: unknown): never {
  throw error
}

const NONE: readonly string[] = []
/** Most updates that are under way at once, and ids in each. */
const MANY = { updates: 4, ids: 32 }
const ONE = { updates: Infinity, ids: 1 }
/** Times that a call is carried out while others are faster to write: three times as many as 32 processes on one key have needed. */
const MOST_TRIES = 300
/** An update without an outcome for so long keeps no other back: some clients never settle a call after its connection broke. */
const LOST_MS = 60_000
