import { giveBack } from '../stores/giving-back.js'
import type { Policy } from '../algorithms/contract/policy.js'
import type { Penalty } from '../stores/penalty.js'
import type { ReserveCall } from '../stores/reservations.js'
import {
  isAboutKey,
  isDenied,
  type MaybePromise,
  type Receiver,
  type Reservations,
  type Together,
} from '../stores/store.js'
import type { Answer, Ask, Booking, Caller, Correction, Keyspace } from '../stores/store.js'
import type { Deadline } from './deadline.js'
import { passTo } from './decide-parts.js'
import type { BegunCall, DenialCache } from './denial-cache.js'
import { degradedAnswer, failureOf, type Health, isOutage, notAsked } from './failure.js'
import { NOTHING_PASSES, undecidedAnswer } from './failure.js'
import { answerTo, type Peek, type PeekCache } from './peek-cache.js'
import { bookUntilMaxWait, type RecoveryQueue } from './booking-until-max-wait.js'
import { nowMs } from '../values/clock.js'
import { StoreError } from '../values/errors.js'
import type { LateReceiver, PendingCall, StoreChannel, StoreRequest } from './store-channel.js'

export interface ResilientKeyspaceOptions {
  /** The state in the store. */
  readonly remote: Keyspace
  readonly channel: StoreChannel
  readonly recovery: RecoveryQueue
  readonly deadline: Deadline
  readonly mode: 'local' | 'allow' | 'deny' | 'throw'
  readonly health: Health
  readonly denials: DenialCache | undefined
  readonly peeks: PeekCache
  /** The store's means to decide parts together, behind its guard. */
  readonly together: Together | undefined
  /** The state that this process keeps in an outage, under its share of the limits. */
  readonly local: () => Keyspace
  /** Whether `local`, under any list, was given blocks that the store reported; `keep` notes that it is. */
  readonly blocks: { readonly areKept: boolean; keep(): void }
}

/** What a call asks of the store. */
type Question = Pick<PendingCall<Answer>, 'kind' | 'key' | 'cost' | 'maxWait'> & {
  /** Whether the call is denied anyway, and only asks how its key stands. */
  readonly isDenied?: boolean
  /** Of a call that reserves. */
  readonly reserve?: ReserveCall
}

/** Calls the store's keyspace for `sender`, who may give up. */
type StoreAct<T> = (keyspace: Keyspace, sender: Caller) => MaybePromise<T>

/** What is recorded of a call that was answered. */
type DecidedCall = Pick<PendingCall<Answer>, 'key' | 'cost' | 'begun'>

/**
 * One limiter's state in a store elsewhere. Every call gets an answer: the store's if it comes in time, else that of the failure
 * mode. A call that the cache knows to be denied is denied at once, without the store. A cost above the capacity is denied
 * whatever the store says, and in every failure mode: a `peek` at the store, or at the state in memory, tells the rest.
 */
export class ResilientKeyspace implements Keyspace, StoreRequest<Answer> {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly channel: StoreChannel
  readonly deadline: Deadline
  /** The smallest capacity of all policies: no larger cost ever fits. */
  readonly capacity: number

  /**
   * Guards the state of one limiter in a store elsewhere (`remote`) against outages. `channel` sends the calls of all limiters with
   * that store, and `deadline` bounds how long this limiter waits for an answer. `penalty`, the blocking of keys after too many
   * denials, is what the store knows of it. A cost above `capacity`, the smallest of all policies, never fits.
   */
  constructor(readonly options: ResilientKeyspaceOptions) {
    this.policies = options.remote.policies
    this.capacity = Math.min(...this.policies.map(({ capacity }) => capacity))
    this.penalty = options.remote.penalty
    this.channel = options.channel
    this.deadline = options.deadline
  }

  /** The means to decide calls on several keys in one step, behind deadline and circuit; undefined if the store has none. */
  get together(): Together | undefined {
    return this.options.remote.together && this.options.together
  }

  /**
   * Decides a call: by a remembered denial, by the store, or by the failure mode. A call that is denied whatever the store says only
   * asks how its key stands (`#answerByPeek`): its cost is above the capacity, or it is a part of a call that is denied. In the modes
   * 'throw' and 'deny' nothing but the store can let a call pass, so a booking with a `caller` may wait for it past the deadline,
   * up to `maxWait` microseconds. 'try' and 'commit' are the steps of a call on several keys, which is the `caller` of both.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): MaybePromise<Answer> {
    if (cost > this.capacity && ask !== 'peek') return this.#answerByPeek(key, cost)
    const known = this.known(key, cost, ask, caller)
    if (known) return known
    if (caller?.isDenied) return this.#answerByPeek(key, cost)
    const question = { kind: ask, key, cost, maxWait }
    const { mode } = this.options
    const onlyStoreAllows = mode === 'throw' || mode === 'deny'
    if (ask === 'book' && caller && onlyStoreAllows) return this.#bookUntilMaxWait(question, caller)
    return this.#send(question, ask === 'try' || ask === 'commit' ? caller : undefined)
  }

  /**
   * Decides a `consume`. Returns the answer if it is known at once: by a remembered denial, by a store that answers at once, or by
   * the failure mode if the call may not be sent (`refusal`). Otherwise sends the call and returns undefined; `receiver` gets the
   * answer later. A cost that never fits is denied, by an answer that only says how the key stands.
   */
  consume(key: string, cost: number, receiver: Receiver<Answer>): Answer | undefined {
    if (cost > this.capacity) {
      const peeked = this.#answerByPeek(key, cost)
      return 'now' in peeked ? peeked : passTo(receiver, peeked)
    }
    const known = this.known(key, cost)
    if (known) return known
    const { remote, health } = this.options
    if (remote.answersAtOnce) {
      const answer = remote.decide('consume', key, cost, 0) as Answer
      if (health.outage) health.decided()
      return answer
    }
    const refusal = this.channel.submit(this, receiver, key, cost)
    return refusal && this.#refuse({ kind: 'consume', key, cost, maxWait: 0 }, refusal)
  }

  /**
   * Sends a call to the store, which answers the call later; an answer that it returns is passed to the call here. Returns the
   * beginning of a `consume` or `try`, by which the cache of denials will judge the answer.
   */
  ask(call: PendingCall<Answer>): BegunCall | undefined {
    const { remote, denials } = this.options
    const { kind, key, cost, maxWait } = call
    const begun = kind === 'consume' || kind === 'try' ? denials?.begin() : undefined
    const answer =
      kind === 'consume' && remote.consume
        ? remote.consume(key, cost, call, call)
        : remote.decide(kind, key, cost, maxWait, call)
    if (answer) call.receive(answer)
    return begun
  }

  /**
   * Records an answer of the store. The denial cache records it if the call was noted there (`begun`); any other call that has
   * booked makes the cache forget the key. An answer may end an outage. A block in it is kept for the next outage.
   */
  noteAnswer({ key, cost, begun }: DecidedCall, answer: Answer): void {
    const { denials, peeks, health, blocks } = this.options
    if (begun) denials!.record(this.policies, key, cost, begun, answer)
    else if (answer.booking) denials?.forget(key)
    if (peeks.isUsed) peeks.learn(this.policies, key, cost, answer)
    if (health.outage) health.decided()
    if (blocks.areKept || answer.blockedUntil !== undefined) this.#keepBlock(key, answer)
  }

  /**
   * Counts a call that the store did not answer as degraded, and returns the failure mode's answer. `isUnasked` says that it was
   * not even sent.
   * @throws the failure itself in mode 'throw', and if it is a misuse and no outage.
   */
  answerByFailureMode(call: Question, failure: unknown, isUnasked = false): Answer {
    if (!isOutage(failure)) throw failure
    this.options.health.degraded(failure)
    return this.decideWithout(call, failure, isUnasked)
  }

  /**
   * Returns the failure mode's answer to a call that failed with `failure`. 'deny' denies it. 'local' decides by the state in this
   * process's memory. So does 'allow' if the key is known to be blocked; otherwise it lets the call pass, and that state only tells
   * how the key stands. A call that is denied anyway (`isDenied`) is denied in every mode, also by that state.
   * @throws the failure in the mode 'throw'; `isUnasked` says that the call was never sent.
   */
  decideWithout(question: Question, failure: Error, isUnasked: boolean): Answer {
    const { kind, key, cost, maxWait, reserve, isDenied = cost > this.capacity } = question
    const why = failureOf(failure)
    const mode = isDenied ? undefined : this.options.mode
    if (mode === 'throw') throw isUnasked ? notAsked(failure) : failure
    if (mode === 'deny') return undecidedAnswer(why, false, NOTHING_PASSES)
    const by = this.options.local()
    const isAllowed = mode === 'allow' && !this.isKnownBlocked(key)
    const ask = isDenied || isAllowed ? 'peek' : kind
    const asked =
      reserve && ask !== 'peek' ? by.reservations!.reserve(reserve) : by.decide(ask, key, cost, maxWait)
    const here = asked as Answer // memory answers at once
    if (isAllowed) return undecidedAnswer(why, true, here)
    if (!isDenied) return degradedAnswer(why, here, by)
    // A share of the limits may never admit what the store's own may.
    const answer = answerTo(cost, { policies: this.policies, cost, answer: here }, here.now)
    return { degraded: { why, allowed: answer.reason === undefined, by }, ...answer }
  }

  /** The reservations in the store, made and changed within the deadline. In an outage the failure mode decides whether to reserve. */
  get reservations(): Reservations | undefined {
    const { reservations } = this.options.remote
    return (
      reservations && {
        reserve: (call, caller) => this.#reserve(call, reservations, caller),
        change: (change) => this.#correct(change.key, (_, sender) => reservations.change(change, sender)),
      }
    )
  }

  /**
   * Reserves units in the store within the deadline, unless an answer is known without it. If the store may not be asked or fails,
   * the failure mode answers. A reservation that is answered too late is settled at 0, as nobody else can settle it.
   */
  async #reserve(call: ReserveCall, reservations: Reservations, caller?: Caller): Promise<Answer> {
    const { key, cost } = call
    if (cost > this.capacity) return this.#answerByPeek(key, cost)
    const known = this.known(key, cost, 'consume', caller)
    if (known) return known
    const question = { kind: 'consume', key, cost, maxWait: 0, reserve: call } as const
    const refusal = this.refusalWithProbe(key)
    if (refusal) return this.answerByFailureMode(question, refusal, true)
    try {
      const answer = await new Promise<Answer>((answered, failed) => {
        const answeredTooLate = (late: Answer): void => {
          this.#giveReservationBack(call, reservations, late).catch(() => {}) // never rejects
        }
        const reserve = (sender: Caller): MaybePromise<Answer> => reservations.reserve(call, sender)
        this.channel.sendFor({ answered, failed, answeredTooLate }, reserve, this.deadline)
      })
      this.noteAnswer({ key, cost, begun: undefined }, answer)
      return answer
    } catch (failure) {
      return this.answerByFailureMode(question, failure)
    }
  }

  /** Asks the store within the deadline how a booking stands at its turn. */
  confirm(booking: Booking): Promise<'stands' | 'lost' | 'held'> {
    return this.#carryOut(booking.key, (keyspace) => keyspace.confirm(booking))
  }

  /**
   * Cancels a booking in the store within the deadline. Resolves to whether the key is as if it had never been booked. With a
   * `caller`, whom the store has just answered, the store is asked even while the circuit is open.
   */
  cancel(booking: Booking, caller?: Caller): Promise<boolean> {
    return this.#correct(booking.key, (keyspace) => keyspace.cancel(booking), caller)
  }

  /**
   * Corrects the state in the store, within the deadline. Resolves to the units that took effect. A block, a hold and a reset
   * concern the key and not units, so they also apply to the state in memory that decides in an outage. A block is applied there
   * again once the store has answered: answers to earlier calls, which do not know of it, may have ended it meanwhile. A `release`
   * has no sender, so the store carries it out even if the deadline passes first.
   */
  async correct(change: Correction): Promise<number> {
    if (isAboutKey(change)) this.#keep(change)
    try {
      return await this.#correct(change.key, (keyspace, sender) =>
        keyspace.correct(change, change.kind === 'release' ? undefined : sender),
      )
    } finally {
      if (change.kind === 'block') this.#keep(change)
    }
  }

  /**
   * Copies a block that the store reports to the state in memory that decides in an outage. Marked `isPenalty`, it never shortens
   * another block there. If the store reports none and a block is known here, that block is over, and ends here too: by a block of
   * duration 0.
   */
  #keepBlock(key: string, { now, reason, blockedUntil = now }: Answer): void {
    if (blockedUntil > now) {
      this.#keep({ kind: 'block', key, duration: blockedUntil - now, isPenalty: true })
    } else if (reason !== 'blocked' && this.isKnownBlocked(key)) {
      this.#keep({ kind: 'block', key, duration: 0 })
    }
  }

  /**
   * Applies a block, a hold or a reset to the state in this process's memory that decides in an outage. The first block is noted
   * (`blocks.areKept`): before it no key is known to be blocked, and that state need not be asked, or even made, to see that.
   */
  #keep(change: Correction): void {
    const { blocks, local } = this.options
    if (change.kind === 'block') blocks.keep()
    Promise.resolve(local().correct(change)).catch(() => {})
  }

  /** Whether the state in memory has a block of the key, which came by an answer of the store or by `block` in this process. */
  isKnownBlocked(key: string): boolean {
    const { blocks, local } = this.options
    return blocks.areKept && (local().decide('peek', key, 0, 0) as Answer).reason === 'blocked'
  }

  /**
   * Returns the remembered denial of a `consume` or `try`, which then need not ask the store; undefined if there is none, or if the
   * caller asks again while it is denied. With a penalty the store has to count refusals, so only a remembered block is returned.
   */
  known(key: string, cost: number, ask: Ask = 'consume', caller?: Caller): Answer | undefined {
    if ((ask !== 'consume' && ask !== 'try') || caller?.asksAgain) return undefined
    const denial = this.options.denials?.get(this.policies, key, cost)
    return this.penalty && denial?.reason !== 'blocked' ? undefined : denial
  }

  /**
   * Answers a call that is denied anyway: its cost is above the capacity, or another key of the same call is denied. So the answer
   * only has to say how the key stands. It comes from a peek (a call that only reads) at the store, one that was sent within the last
   * second (`known`) or one that is sent now. A known peek has an answer, has failed, or is under way until `ended`. If the peek
   * failed, or the store may not be asked now (`refusalWithProbe` returns why), the failure mode answers.
   */
  #answerByPeek(key: string, cost: number): MaybePromise<Answer> {
    const { remote, peeks } = this.options
    if (remote.answersAtOnce) return remote.decide('peek', key, cost, 0)
    let known = peeks.get(this.policies, key)
    // The answer to a cost that never fits does not tell whether calls on the key are paused by a hold.
    if (known && known.cost > this.capacity && cost <= this.capacity) known = undefined
    if (known?.answer) return { from: 'cache', ...peeks.read(known, cost) }
    const failure = known ? known.failure : this.refusalWithProbe(key)
    const question = { kind: 'peek', key, cost, maxWait: 0, isDenied: true } as const
    if (failure !== undefined) return this.answerByFailureMode(question, failure)
    const peek = known ?? this.#peek(key, cost)
    return peek.ended.then(() =>
      peek.answer ? peeks.read(peek, cost) : this.answerByFailureMode(question, peek.failure),
    )
  }

  /**
   * Sends the store a peek, a call about `cost` units that only reads, and returns it at once. It is kept for a second, for other
   * calls on the key that need no newer answer.
   */
  #peek(key: string, cost: number): Peek {
    const { remote, peeks } = this.options
    const ask = (caller: Caller): MaybePromise<Answer> => remote.decide('peek', key, cost, 0, caller)
    return peeks.begin(this.policies, key, cost, async () => {
      const answer = await this.channel.send(ask, this.deadline)
      this.noteAnswer({ key, cost, begun: undefined }, answer)
      return answer
    })
  }

  /**
   * Sends a call to the store. With `whole`, a call on several keys, it is one step for one of them: 'try' charges nothing,
   * 'commit' charges. Both steps have one deadline: that of 'commit' counts from the latest 'try' of all keys (`whole.since`). If it
   * is over already, the store is not asked. A charge that is answered after the whole has ended (`whole.gone`) is given back.
   */
  #send(question: Question, whole?: Caller): MaybePromise<Answer> {
    const { ms } = this.deadline
    const { kind, key, cost } = question
    const since = kind === 'commit' ? whole?.since : undefined
    if (since && nowMs() - since >= ms) {
      const why = `the other keys took ${ms} ms to answer`
      const failure = new StoreError('STORE_TIMEOUT', why, { sent: false })
      return this.answerByFailureMode(question, this.channel.explained(failure), true)
    }
    let receiver!: LateReceiver<Answer>
    const outcome = new Promise<Answer>((resolve, failed) => {
      /** Tells the whole when this step began: the deadline of 'commit' counts from the latest 'try'. */
      const answered = (answer: Answer, began: number): void => {
        whole?.began?.(began)
        resolve(answer)
      }
      const answeredTooLate = (late: Answer): void => {
        if (kind === 'commit' && whole?.gone) this.#giveBack(key, cost, late).catch(() => {})
      }
      receiver = { answered, failed, answeredTooLate }
    })
    const refusal = this.channel.submit(this, receiver, key, cost, { since, ...question })
    return refusal ? this.#refuse(question, refusal) : outcome
  }

  /**
   * Books a turn in the store, which is an instant at which the units are charged. Waits for the answer up to `maxWait`, past the
   * deadline, and sends the booking again after failures that may pass; after other failures the failure mode decides. A booking
   * whose answer comes too late is given back.
   */
  async #bookUntilMaxWait(question: Question, caller: Caller): Promise<Answer> {
    const { recovery, remote } = this.options
    const { kind, key, cost, maxWait } = question
    try {
      const answer = await bookUntilMaxWait(recovery, this.deadline, {
        maxWait,
        caller,
        book: (most, sender) => remote.decide(kind, key, cost, most, sender),
        read: () => remote.decide('peek', key, 0, 0),
        giveBack: (late) => this.#giveBack(key, cost, late),
      })
      this.noteAnswer({ key, cost, begun: undefined }, answer)
      return answer
    } catch (failure) {
      return this.answerByFailureMode(question, failure)
    }
  }

  /**
   * Gives back in the store what a call has charged, or booked, whose answer (`late`) came too late for its caller: `cost` units.
   * Never rejects.
   */
  #giveBack(key: string, cost: number, late: Answer): Promise<void> {
    const { remote } = this.options
    return this.#undo(key, (send) => {
      const sender = {
        cancel: (booking: Booking) => send(() => remote.cancel(booking)),
        correct: (change: Correction) => send(() => remote.correct(change)),
      }
      return giveBack(sender, key, cost, late)
    })
  }

  /**
   * Gives back a reservation that the store has made, but whose answer (`late`) came too late for its caller: settles it at 0 units,
   * as nobody else knows its id. A denied one holds nothing.
   */
  async #giveReservationBack(call: ReserveCall, reservations: Reservations, late: Answer): Promise<void> {
    if (isDenied(late)) return
    const { key, id, ttl } = call
    const made = { key, id, decidedAt: late.now, end: late.now + ttl }
    await this.#undo(key, (send) => send(() => reservations.change({ ...made, kind: 'settle', units: 0 })))
  }

  /**
   * Has `undo` undo a charge whose answer came too late, by calls to the store that it makes through `send`. They are sent while the
   * circuit is open too, because the store has just answered. Resolves at the deadline at the latest (`overdue`), though the store
   * may carry them out after that; never rejects. If they fail, the units stay charged and unused.
   */
  async #undo(
    key: string,
    undo: (send: <T>(act: () => MaybePromise<T>) => Promise<T>) => Promise<unknown>,
  ): Promise<void> {
    const { channel, deadline } = this
    try {
      await undo(
        (act) =>
          new Promise((answered, failed) => {
            channel.sendFor({ overdue: failed, answered, failed }, act, deadline)
          }),
      )
    } catch {
      // the units stay charged, or are given back later
    } finally {
      this.#forget(key)
    }
  }

  /**
   * Returns why the store may not be asked now: its last failure while the circuit is open, or too many waiting calls. Then it also
   * tests the store if that is due. Returns undefined if the store may be asked.
   */
  refusalWithProbe(key: string): Error | undefined {
    const refusal = this.channel.refusal()
    if (refusal) this.#probe(key)
    return refusal
  }

  /** Tests a store whose circuit is open by a peek of 0 units at this key, if a test is due. */
  #probe(key: string): void {
    this.channel.probeIfOpen(() => this.options.remote.decide('peek', key, 0, 0), this.deadline)
  }

  /** Returns the failure mode's answer to a call that was not sent because of `refusal`, and tests the store if that is due. */
  #refuse(question: Question, refusal: Error): Answer {
    this.#probe(question.key)
    return this.answerByFailureMode(question, refusal, true)
  }

  /**
   * Has the store carry out `act` within the deadline, and resolves to the result. By the `sender` that `act` gets, the store can
   * leave out a call whose deadline has passed before it is sent. Rejects if the store may not be asked now. With a `caller`, whom
   * the store has just answered, that is not checked, and the deadline counts from the first step of that call.
   */
  async #carryOut<T>(key: string, act: StoreAct<T>, caller?: Caller): Promise<T> {
    const refusal = caller ? undefined : this.refusalWithProbe(key)
    if (refusal) throw notAsked(refusal)
    const { channel, deadline } = this
    const { remote } = this.options
    return channel.send((sender) => act(remote, sender), deadline, caller?.since)
  }

  /** Carries out the correction `act`, and forgets what is remembered of the key, also after a failure: it may have worked. */
  async #correct<T>(key: string, act: StoreAct<T>, caller?: Caller): Promise<T> {
    try {
      return await this.#carryOut(key, act, caller)
    } finally {
      this.#forget(key)
    }
  }

  /** Removes all that is remembered of a key whose state was corrected. */
  #forget(key: string): void {
    this.options.denials?.forget(key)
    this.options.peeks.forget(key)
  }
}
