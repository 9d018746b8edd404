import { haveEqualNumbers, type Policy } from '../../algorithms/contract/policy.js'
import { MOST_ENTRIES } from '../../algorithms/contract/state.js'
import { expected, InputError, StoreError } from '../../values/errors.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Caller, Correction, Keyspace, Part, Receiver, Report, Together } from '../store.js'
import type { Clock } from '../../values/clock.js'
import type { GroupCommit } from './group-commit.js'
import { redisKey } from './key.js'
import type { ScriptCall } from './script-call.js'
import { hasHealed, packCharge, packRequest } from './script/wire.js'
import { unpackAnswer, unpackAnswers, unpackConfirmation, unpackEffect } from './script/wire.js'
import type { PackedReply, RedisBooking, ScriptPart, ScriptRequest } from './script/wire.js'

export interface RedisKeyspaceOptions {
  /** The beginning of all keys: `prefix:format:name:shapes`. */
  readonly keyspace: string
  /** Returns the hash tag before a caller's part; empty without groups. */
  readonly tagOf: (callerKey: string) => string
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: Clock
  readonly report: Report
  readonly policies: readonly Policy[]
  readonly penalty?: Penalty | undefined
  /** Of the policies and the penalty: keyspaces of one id have one script. */
  readonly listId: string
  /** Nothing in a Cluster. */
  readonly together: () => Together | undefined
  /** Returns what sends the calls of the script for these shapes and this penalty. */
  readonly group: () => GroupCommit
  readonly smallestLimits: SmallestLimits
}

/** The state of one limiter under one list of shapes in Redis. Each operation is one call of one script on one key. */
export class RedisKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly #hasLog: boolean
  #consumption: ScriptRequest | undefined // the latest one: most calls of a keyspace have the same cost

  /** Opens a limiter's state and notes its limits: Redis keeps a key until full under the smallest, which refill slowest. */
  constructor(readonly options: RedisKeyspaceOptions) {
    this.policies = options.policies
    this.penalty = options.penalty
    options.smallestLimits.observe(options.policies)
    this.#hasLog = options.policies.some(({ algorithm }) => algorithm.ring)
  }

  get together(): Together | undefined {
    return this.options.together()
  }

  /**
   * Decides a call of `cost` units on `key` in one script call. A booking waits at most `maxWait` microseconds. A sliding log
   * writes an entry for each unit: a cost of more entries than one script call may write is refused, unless the call only reads.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): Promise<Answer> {
    if (ask !== 'peek' && this.#isTooCostly(cost)) return Promise.reject(tooCostly(cost))
    return this.#ask({ operation: ask, cost, span: maxWait }, key, unpackAnswer, caller)
  }

  /**
   * Decides a plain `consume` without a promise for each call: `receiver` gets the answer later, so nothing is returned.
   * @throws {InputError} INVALID_COST for a cost that would write too many entries of a log.
   */
  consume(key: string, cost: number, receiver: Receiver<Answer>, caller?: Caller): undefined {
    if (this.#isTooCostly(cost)) throw tooCostly(cost)
    this.#send(this.#consume(cost), key, unpackAnswer, receiver, caller)
  }

  /**
   * Returns a part, the share of one key in a call on several, whose script has its list of policies as number `list`. Its share
   * of Redis's time, `units`, is 1, or its cost on a log.
   * @throws {InputError} INVALID_COST for one that would write too many entries of a log, which writes one for each unit.
   */
  partOf({ key, cost, enforce }: Part, list: number): WholePart {
    if (this.#isTooCostly(cost)) throw tooCostly(cost)
    const units = this.#hasLog ? cost : 1
    return { keyspace: this, key, list, request: this.#consume(cost), enforce, units }
  }

  /**
   * Asks how a booking stands whose turn has come: 'lost' if its key's state is gone, 'held' if the key is blocked or held now.
   * The first 16 bytes of its token name it by two random numbers: the epoch, of state begun anew, and the version, of its write.
   */
  confirm({ key, token }: RedisBooking): Promise<'stands' | 'lost' | 'held'> {
    return this.#ask({ operation: 'confirm', token: token.subarray(0, 16) }, key, unpackConfirmation)
  }

  /**
   * Cancels a booking, once. True if Redis has restored the key's state as it was before. False if another call has charged the
   * key since: then only its units that still count are given back. False, too, if the state is gone or it was cancelled before.
   */
  async cancel(booking: RedisBooking): Promise<boolean> {
    if (booking.isCancelled) return false
    booking.isCancelled = true
    const { key, at, cost, token } = booking
    return (await this.#ask({ operation: 'cancel', cost, span: at, token }, key, unpackEffect)) === 1
  }

  /** Applies a refund, release, charge, block, hold or reset. Returns the units that took effect under every policy, if any. */
  async correct(change: Correction): Promise<number> {
    const { kind: operation, key } = change
    if (change.kind === 'charge') return this.#charge(key, change.cost)
    return this.#ask({ operation, ...amountOf(change) }, key, unpackEffect)
  }

  /**
   * Charges a key, whether the cost fits or not, and returns the units that took effect. A sliding log writes an entry for each
   * unit, so a charge there takes calls of at most MOST_ENTRIES each, none of which keeps Redis busy for longer than a decision.
   */
  async #charge(key: string, cost: number): Promise<number> {
    const most = this.#hasLog ? MOST_ENTRIES : cost
    let effect = 0
    for (let left = cost; left > 0; left -= most) {
      try {
        effect += await this.#ask({ operation: 'charge', cost: Math.min(left, most) }, key, unpackEffect)
      } catch (error) {
        if (left === cost || !(error instanceof StoreError)) throw error
        // An earlier call was carried out, so it is no longer true that nothing was sent.
        throw new StoreError(error.code, error.message, { cause: error, sent: true })
      }
    }
    return effect
  }

  /**
   * Sends a request about `key`, and resolves with what `read` makes of the reply. If smaller limits than its own were used on
   * this state, the request carries them (`slowest`): under them a key takes longest to be full again, and Redis must keep it so
   * long. A request with a token, which names an earlier booking or charge, has the token in their place.
   */
  #ask<T>(asked: Asked, key: string, read: ReplyReader<T>, caller?: Caller): Promise<T> {
    const slowest = asked.token ? undefined : this.options.smallestLimits.below(this.policies)
    const request = { ...asked, policies: this.policies, slowest }
    return new Promise((answered, failed) => {
      this.#send(request, key, read, { answered, failed }, caller)
    })
  }

  /** Puts a request into a batch, which bounds the `units` written to logs. `receiver` gets what `read` makes of the reply. */
  #send<T>(
    request: ScriptRequest,
    key: string,
    read: ReplyReader<T>,
    receiver: Receiver<T>,
    caller: Caller | undefined,
  ): void {
    const call = new KeyspaceCall(this.options, key, request, read, receiver)
    if (this.#hasLog) call.units = request.cost ?? 1
    call.caller = caller
    this.options.group().add(call)
  }

  /**
   * Returns the request of a plain `consume`. `slowest` has the smallest limits that were used on this state, if below its own:
   * under them a key takes longest to be full again, and Redis must keep it so long. Most calls have the numbers of the last
   * one, and get the same object, which is quick to compare.
   */
  #consume(cost: number): ScriptRequest {
    const slowest = this.options.smallestLimits.below(this.policies)
    const known = this.#consumption
    if (known && known.cost === cost && known.slowest === slowest) return known
    return (this.#consumption = { operation: 'consume', policies: this.policies, cost, slowest })
  }

  /** Whether a call of this cost would write more entries of a sliding log, one for each unit, than one script call may. */
  #isTooCostly(cost: number): boolean {
    return this.#hasLog && cost > MOST_ENTRIES
  }
}

type Asked = Omit<ScriptRequest, 'policies' | 'slowest'>

/**
 * Returns the cost, duration and token of the request for a correction. A release names its charge by a token. For a block, a
 * cost of 1 says that a penalty began it, so that it never shortens another block, and 0 that an operator did.
 */
function amountOf(change: Correction): Omit<Asked, 'operation'> {
  if (change.kind === 'release') return { cost: change.units, token: packCharge(change.charge) }
  if ('cost' in change) return { cost: change.cost }
  if (!('duration' in change)) return {}
  return { cost: change.kind === 'block' && change.isPenalty ? 1 : 0, span: change.duration }
}

/** The error about a cost that would write more entries of a log than one script call may. */
function tooCostly(cost: number): Error {
  const bound = `cost of a call on a sliding log in Redis must be at most ${MOST_ENTRIES}`
  return expected(InputError, 'INVALID_COST', bound, cost)
}

/** Reads the caller's result from a reply. */
type ReplyReader<T> = (reply: Buffer, request: ScriptRequest, key: string) => T

/** One operation of a keyspace on one key, and who gets its outcome. */
export class KeyspaceCall<T> implements ScriptCall {
  duplicates: KeyspaceCall<T>[] | undefined = undefined
  units = 1
  caller: Caller | undefined = undefined
  readonly tag: string

  /** A call on one key: `receiver` gets what `read` makes of the reply. In a Cluster, calls of one hash `tag` go together. */
  constructor(
    readonly context: RedisKeyspaceOptions,
    readonly callerKey: string,
    readonly request: ScriptRequest,
    readonly read: ReplyReader<T>,
    readonly receiver: Receiver<T>,
  ) {
    this.tag = context.tagOf(callerKey)
  }

  get keyspace(): string {
    return this.context.keyspace
  }

  /** The Redis key of the caller's key. With groups it has a hash tag, which puts all keys of a group into one Cluster slot. */
  get key(): string {
    return redisKey(this.context.keyspace, this.callerKey, this.tag)
  }

  /** Whether the other call may be sent with this one's argument: both are `consume`, with equal cost and limits. */
  sharesArgument(other: KeyspaceCall<T>): boolean {
    return areEqualConsumes(this.request, other.request)
  }

  /** Returns the script's argument for this call, made `times` times in a row: equal calls on the same key are sent once. */
  argument(times: number): Buffer {
    const request = times === 1 ? this.request : { ...this.request, count: times }
    return packRequest(request, this.context.clock(), nonce())
  }

  /** Gives this call and its duplicates (equal calls on the key) their answers. Reports that unreadable state was discarded. */
  answer(reply: Buffer): void {
    const { callerKey, duplicates, request } = this
    if (hasHealed(reply)) this.context.report({ event: 'healed', key: callerKey })
    if (!duplicates) return this.receiver.answered(this.read(reply, request, callerKey))
    const answers = unpackAnswers(reply, request.policies, 1 + duplicates.length) as readonly (Answer & T)[]
    this.receiver.answered(answers[0]!)
    for (let i = 0; i < duplicates.length; i++) duplicates[i]!.receiver.answered(answers[i + 1]!)
  }

  /** Gives this call and its duplicates (equal calls on its key), none of which was denied, the next answers in the reply. */
  answerPlain(this: KeyspaceCall<Answer>, reply: PackedReply): void {
    const { duplicates, request } = this
    const { length } = request.policies
    this.receiver.answered(reply.next(length))
    if (duplicates) for (const call of duplicates) call.receiver.answered(reply.next(length))
  }

  /** Fails this call alone; its duplicates are failed by the sender. */
  fail(error: unknown): void {
    this.receiver.failed(error)
  }
}

/** A part of a call on several keys. */
export interface WholePart extends ScriptPart {
  readonly keyspace: RedisKeyspace
  readonly key: string
  /** Its share of Redis's time, as that of a ScriptCall. */
  readonly units: number
}

/** Whether two requests are plain `consume` calls with the same cost, limits, capacities, and smallest limits seen. */
export function areEqualConsumes(a: ScriptRequest, b: ScriptRequest): boolean {
  if (a.operation !== 'consume' || b.operation !== 'consume') return false
  return a === b || (a.cost === b.cost && a.slowest === b.slowest && haveEqualNumbers(a.policies, b.policies))
}

const NONCES = 2 ** 48

/**
 * Returns a random whole number from 1 to 2^48. A script stores it as the version of each write, and as the epoch of state begun
 * anew, so that a booking notices that its state was changed or lost.
 */
export function nonce(): number {
  return 1 + Math.floor(Math.random() * NONCES)
}

/**
 * The smallest limit of each policy that this process has used under one name and list of shapes. Usage recorded under a higher
 * tier must still count when a lower tier asks, so a key's TTL covers a full refill at these. Keyspaces of all tiers share them.
 */
export class SmallestLimits {
  #limits: readonly number[] = []

  /** Lowers the smallest limits to those of a list, where smaller: Redis keeps state until the allowance is full under all. */
  observe(policies: readonly Policy[]): void {
    this.#limits = policies.map(({ limit }, i) => Math.min(limit, this.#limits[i] ?? limit))
  }

  /** Returns the smallest limits seen if one is below that of its policy here; otherwise undefined, as nothing need be sent. */
  below(policies: readonly Policy[]): readonly number[] | undefined {
    return policies.some(({ limit }, i) => limit > this.#limits[i]!) ? this.#limits : undefined
  }
}
