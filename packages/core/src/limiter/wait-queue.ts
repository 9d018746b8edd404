import { giveBack } from '../stores/giving-back.js'
import { isDenied } from '../stores/store.js'
import type { Answer, Booking, Caller, Keyspace, MaybePromise, Store } from '../stores/store.js'
import { onAbort } from '../values/abort.js'
import { storeClosed } from '../values/closing.js'
import type { PolicySet } from './policy-set.js'
import { StoreClock } from './store-clock.js'
import { Turns } from './turns.js'
import { clearTimer, setTimer } from '../values/clock.js'

/** A wait longer than this, in microseconds, is confirmed in the store before it ends. */
const TRUSTED_WAIT = 250_000

/** The longest until a call asks again while units of its key are reserved, in microseconds. */
const LONGEST_PAUSE = 1_000_000

/** How long a queue that closes waits for the store to take places back, in milliseconds. */
const CLOSING_MS = 30

/** The calls of one limiter that wait for their turn. Their places are booked in the store; here they are woken. */
export class WaitQueue {
  readonly #clock = new StoreClock()
  readonly #turns: Turns
  /** By key, the call that was booked last of those that still wait. */
  readonly #latest = new Map<string, QueuedCall>()
  /** Calls, and bookings that are given back, which have not ended. */
  #unsettled = 0
  #onAllSettled: (() => void) | undefined
  /** Of each call that waits, for the store or for its turn, what rejects it. */
  readonly #waiters = new Set<(error: Error) => void>()
  #closed: Error | undefined

  /**
   * Makes a queue for calls that wait for their turns: instants, booked in `store`, at which their units are charged. Its timers
   * follow a test's fake clock, unless the store keeps the time of another machine.
   */
  constructor(private readonly store: Store) {
    this.#turns = new Turns(() => store.now(), store.keepsTime ? REAL_TIMERS : TIMERS)
  }

  /**
   * Books the turn of a call in the store and resolves when the turn has come; at once for a denied call. The turn may be
   * `maxWait` microseconds away. A booking that is lost or held at its turn is made again. Rejects when `signal` aborts, or when
   * the queue or the store closes; the booking is given back then.
   */
  turn(set: PolicySet, key: string, cost: number, maxWait: number, signal?: AbortSignal): Promise<WaitEnd> {
    const turn = this.#bookAndWait(set, key, cost, maxWait, signal)
    this.#track(turn)
    return turn
  }

  /**
   * Waits for units of a limiter that reserves, which books no turns: asks again and again, until the call is allowed, or denied for
   * longer than what is left of `maxWait`. While units are reserved it asks each second, as they may be settled long before their
   * end, and once within a second if one ends sooner; otherwise at the instant at which the cost passes. If a penalty counts
   * refusals, it only peeks, and charges when a peek has found room (`charge`); its last question counts as a refusal. Rejects as
   * `turn` does; what was charged by an answer that comes after that is given back (`undo`).
   */
  async turnByAsking(set: PolicySet, { ask, undo, charge, maxWait, signal }: PatientCall): Promise<WaitEnd> {
    const start = this.store.now()
    const longestWait = set.enforce ? maxWait : 0 // in shadow mode no call waits
    let storeTime = 0
    let isRefusalCounted = false
    let wasPauseShort = false
    const waitLeft = (): number => longestWait - (this.store.now() - start)
    const answerTo = async (how: PatientAsk): Promise<Answer> => {
      const sent = this.store.now()
      const answer = ask(how, how === 'consume' && longestWait > 0 ? ASKS_AGAIN : undefined)
      if ('at' in answer) return answer
      const later = await this.#answerTo(answer, how === 'peek' ? undefined : undo, signal)
      storeTime += this.store.now() - sent
      return later
    }
    /** Returns the microseconds until it asks again; 0 or less after an answer that is the last. */
    const pauseAfter = (answer: Answer): number => {
      const { reason, at, now, nextEnd, blockedUntil } = answer
      const isBlocked = reason === 'blocked' || blockedUntil !== undefined
      if (!isDenied(answer) || reason === 'cost' || isBlocked) return 0
      const untilItFits = at - now
      if (nextEnd === undefined) return untilItFits > waitLeft() ? 0 : untilItFits
      const untilNextEnd = wasPauseShort ? LONGEST_PAUSE : nextEnd - now
      return Math.min(untilNextEnd, LONGEST_PAUSE, waitLeft())
    }
    for (;;) {
      signal?.throwIfAborted()
      const hasPenalty = set.keyspace.penalty !== undefined
      const peeksFirst: boolean = hasPenalty && (waitLeft() > 0 || isRefusalCounted)
      let how: PatientAsk = peeksFirst ? 'peek' : 'consume'
      let answer = await answerTo(how)
      if (how === 'peek' && !isDenied(answer)) answer = await answerTo((how = charge))
      const isLastDenial = how !== 'consume' && isDenied(answer) && pauseAfter(answer) <= 0
      if (isLastDenial && !isRefusalCounted) answer = await answerTo((how = 'consume'))
      isRefusalCounted ||= how === 'consume'
      const pause = pauseAfter(answer)
      const now = this.store.now()
      if (pause <= 0) return { answer, waited: now - start, late: 0, storeTime }
      wasPauseShort = pause < LONGEST_PAUSE
      await this.#sleep(now + pause, signal)
    }
  }

  /** Calls that wait for the store or for their turn. */
  get size(): number {
    return this.#waiters.size
  }

  /**
   * Rejects all calls that wait, and later ones, with `error`. Resolves when their bookings are given back in the store, or after
   * 30 ms, as a store that does not answer must not delay the end of a process.
   */
  async close(error: Error): Promise<void> {
    this.#closed = error
    for (const reject of this.#waiters) reject(error)
    let timer: ReturnType<typeof setTimeout>
    const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSING_MS)))
    const allSettled = new Promise<void>((resolve) => (this.#onAllSettled = resolve))
    if (this.#unsettled > 0) await Promise.race([allSettled, timeout])
    clearTimeout(timer!)
  }

  /**
   * Books a turn in the store and waits for it. If the booking no longer stands then, the call books again for what is left of
   * `maxWait`. A call that is denied or need not wait returns at once, and so does every call in shadow mode (`!set.enforce`). A
   * booking whose wait ends in an error is given back. Times are microseconds.
   */
  async #bookAndWait(
    set: PolicySet,
    key: string,
    cost: number,
    maxWait: number,
    signal?: AbortSignal,
  ): Promise<WaitEnd> {
    signal?.throwIfAborted()
    const start = this.store.now()
    let sent = start
    let waitLeft = maxWait
    let storeTime = 0
    for (;;) {
      const caller: BookingCaller = { gone: false }
      // Without a caller the store is not waited for beyond its deadline: in shadow mode no call waits.
      const booked = set.keyspace.decide('book', key, cost, waitLeft, set.enforce ? caller : undefined)
      // If the store fails to take it back, the booking stays.
      const undo = (made: Answer): Promise<void> =>
        giveBack(keyspaceOf(set, made), key, cost, made).catch(() => {})
      const isAnsweredAtOnce = 'at' in booked
      const answer = isAnsweredAtOnce ? booked : await this.#answerTo(booked, undo, signal, caller)
      set.booked?.(answer)
      const received = this.store.now()
      if (!isAnsweredAtOnce) storeTime += received - sent
      const wait = answer.at - answer.now
      // The instants of a store elsewhere are those of its clock; an answer that was made here has this process's.
      const isMadeHere = answer.degraded || answer.from === 'none'
      const turnAt = isMadeHere ? received + wait : this.#clock.toLocal(answer.at, answer.now, sent, received)
      const callAhead = this.#callAhead(key, answer)
      // A call that need not wait must not overtake those whose turns have passed unseen.
      const isTurnNow = set.exempt || (wait <= 0 && !callAhead && !this.#turns.isLate(received))
      if (isDenied(answer) || !set.enforce || isTurnNow)
        return { answer, waited: received - start, late: 0, storeTime }
      const queued = new QueuedCall(answer.at, callAhead)
      if (!answer.degraded) this.#latest.set(key, queued)
      try {
        const state = await this.#waitForTurn(set, answer, turnAt, callAhead, signal)
        if (state === 'stands') {
          const now = this.store.now()
          return { answer, waited: now - start, late: now - turnAt, storeTime }
        }
        if (state === 'held') await undo(answer)
      } catch (error) {
        await undo(answer)
        throw error
      } finally {
        this.#endWait(key, queued)
      }
      sent = this.store.now()
      waitLeft = Math.max(0, maxWait - (sent - start))
    }
  }

  /**
   * Sleeps until the instant `turnAt` of this process's clock, and until `callAhead`, a call on the same key, has passed. Returns
   * how the booking stands then, by the store unless the wait was short: it 'stands', is 'lost' with the key's state, or is 'held'
   * because the key is blocked or held now.
   */
  async #waitForTurn(
    set: PolicySet,
    answer: Answer,
    turnAt: number,
    callAhead: QueuedCall | undefined,
    signal: AbortSignal | undefined,
  ): Promise<'stands' | 'lost' | 'held'> {
    await this.#sleep(turnAt, signal)
    const { booking } = answer
    const needsNoConfirming = answer.at - answer.now <= TRUSTED_WAIT || !booking
    const [state] = await Promise.all([
      needsNoConfirming ? ('stands' as const) : this.#confirm(keyspaceOf(set, answer), booking, signal),
      callAhead && this.#passed(callAhead, signal),
    ])
    return state
  }

  /**
   * Waits for the store's answer to a call. If the call is given up before (by its signal, or because the queue or the store closes),
   * the store learns that the `caller` of a booking is gone, and `undo` gives back what was charged when the answer comes; `close`
   * waits for that.
   */
  #answerTo(
    asked: Promise<Answer>,
    undo: ((late: Answer) => Promise<unknown>) | undefined,
    signal?: AbortSignal,
    caller?: BookingCaller,
  ): Promise<Answer> {
    return this.#unlessGivenUp(signal, (resolve, reject) => {
      asked.then(resolve, reject)
      return () => {
        if (caller) caller.gone = true
        caller?.left?.()
        this.#track(asked.then(undo))
      }
    })
  }

  /** Waits until the instant `at`, in microseconds of this process's clock. Rejects if the call is given up meanwhile. */
  #sleep(at: number, signal?: AbortSignal): Promise<void> {
    return this.#unlessGivenUp(signal, (wake, fail) => this.#turns.add({ at, wake, fail }))
  }

  /** Waits until a queued call, and all of its key ahead of it, have passed or have left. */
  #passed(call: QueuedCall, signal?: AbortSignal): Promise<void> {
    return this.#unlessGivenUp(signal, (resolve) => {
      call.passed.then(resolve, resolve) // it never rejects
    })
  }

  /** Asks the store how a booking stands at its turn. If the store fails, the booking is taken to stand. */
  #confirm(keyspace: Keyspace, booking: Booking, signal?: AbortSignal): Promise<'stands' | 'lost' | 'held'> {
    return this.#unlessGivenUp(signal, (resolve) => {
      const state = Promise.resolve().then(() => keyspace.confirm(booking))
      state.then(resolve, () => resolve('stands'))
    })
  }

  /**
   * The call that was booked last on the key, if it still waits and its turn is not after that of this answer; otherwise
   * undefined. The next call waits for it even if its own turn seems to have come: turns on this process's clock are estimates,
   * and some bookings are confirmed first. A turn that the failure mode decided (`degraded`) is on another clock and compared
   * with none.
   */
  #callAhead(key: string, { at, degraded }: Answer): QueuedCall | undefined {
    const latest = this.#latest.get(key)
    return latest && !degraded && latest.at <= at ? latest : undefined
  }

  /** Ends the wait of a call that has had its turn, has left or books again. Those behind it wait for the one ahead of it. */
  #endWait(key: string, ended: QueuedCall): void {
    const callAhead = ended.end()
    if (this.#latest.get(key) !== ended) return
    if (callAhead) this.#latest.set(key, callAhead)
    else this.#latest.delete(key)
  }

  /**
   * Calls `begin`, and returns a promise that `begin` settles, unless the call is given up before: `signal` aborts, or the queue or
   * the store closes. Then the promise rejects, and the function that `begin` has returned, if any, is called to undo what it began.
   * There is no other promise in between: with one, calls that need not wait would overtake a call that is woken.
   */
  #unlessGivenUp<T>(
    signal: AbortSignal | undefined,
    begin: (resolve: (value: T) => void, reject: (error: unknown) => void) => (() => void) | void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        stopListening?.()
        stopWatching?.()
        this.#waiters.delete(giveUp)
      }
      const giveUp = (error: unknown): void => {
        end()
        undo?.()
        reject(error)
      }
      const { closed } = this.store
      const stopListening = signal && onAbort(signal, () => giveUp(signal.reason))
      const stopWatching = closed && onAbort(closed, () => giveUp(storeClosed()))
      this.#waiters.add(giveUp)
      const undo = begin(
        (value) => (end(), resolve(value)),
        (error) => (end(), reject(error)),
      )
      if (this.#closed) giveUp(this.#closed)
      else if (signal?.aborted) giveUp(signal.reason)
    })
  }

  /** Notes that `work`, such as giving a booking back, is going on, so that `close` waits until it has settled. */
  #track(work: Promise<unknown>): void {
    this.#unsettled++
    const settled = (): void => {
      this.#unsettled--
      if (this.#unsettled === 0) this.#onAllSettled?.()
    }
    work.then(settled, settled)
  }
}

/** A call in the order of those that wait on one key. */
class QueuedCall {
  /** Resolves once this call, and each ahead of it, has had its turn, has left or books again. */
  readonly passed: Promise<void>
  #passAfter!: (callAhead?: Promise<void>) => void
  #isOver = false
  #ahead: QueuedCall | undefined

  /** Queues a call whose turn is the instant `at` of the store's clock, behind the call `ahead`, if any. */
  constructor(
    readonly at: number,
    ahead: QueuedCall | undefined,
  ) {
    this.#ahead = ahead
    this.passed = new Promise((resolve) => (this.#passAfter = resolve))
  }

  /** Ends its wait. Returns the nearest call ahead that still waits, as this call may have left; undefined without one. */
  end(): QueuedCall | undefined {
    let ahead = this.#ahead
    while (ahead && ahead.#isOver) ahead = ahead.#ahead
    this.#ahead = ahead
    this.#isOver = true
    this.#passAfter(ahead?.passed)
    return ahead
  }
}

interface BookingCaller extends Caller {
  gone: boolean
}

/** How a call that waits asks a keyspace: 'consume' counts a refusal for a penalty, the others count none. */
type PatientAsk = 'consume' | 'peek' | 'commit'

/** The caller of a call that asks again while it is denied. */
const ASKS_AGAIN: Caller = { gone: false, asksAgain: true }

/** A call that waits at a limiter that reserves. */
interface PatientCall {
  readonly ask: (how: PatientAsk, caller?: Caller) => MaybePromise<Answer>
  /** Gives back what an answer has charged. */
  readonly undo: (late: Answer) => Promise<unknown>
  /** How it charges what a peek has found to fit. */
  readonly charge: Exclude<PatientAsk, 'peek'>
  /** In microseconds. */
  readonly maxWait: number
  readonly signal: AbortSignal | undefined
}

/** The end of a wait. Times are microseconds. */
export interface WaitEnd {
  readonly answer: Answer
  /** From the call to its turn. */
  readonly waited: number
  /** From the turn to its end here. */
  readonly late: number
  /** Spent on answers of a store elsewhere. */
  readonly storeTime: number
}

/** Returns the keyspace that made an answer: the failure mode's if the store did not decide, otherwise the store's own. */
export function keyspaceOf(set: PolicySet, answer: Answer): Keyspace {
  return answer.degraded?.by ?? set.keyspace
}

const TIMERS = { set: setTimer, clear: clearTimer }
/** For stores whose time a test does not move. */
const REAL_TIMERS: typeof TIMERS = {
  set: (task, ms) => setTimeout(task, ms),
  clear: (timer) => clearTimeout(timer),
}
