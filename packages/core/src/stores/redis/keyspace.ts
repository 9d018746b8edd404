import { haveEqualNumbers, type Policy } from '../../algorithms/contract/policy.js'
import { MOST_ENTRIES } from '../../algorithms/contract/state.js'
import { expectedButGot, InputError, StoreError } from '../../values/errors.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Caller, Correction, ChargeCounts, Keyspace, Part } from '../store.js'
import type { Receiver, Report, Reservations, Together } from '../store.js'
import type { Clock } from '../../values/clock.js'
import type { GroupCommit } from './group-commit.js'
import { outsideAt } from './clients/failure.js'
import { redisKey } from './key.js'
import type { ScriptCall } from './script-call.js'
import { hasHealed, packCharge, packed, packRequest, REDIS_TIME } from './script/wire.js'
import { unpackAnswer, unpackAnswers, unpackConfirmation, unpackEffect } from './script/wire.js'
import { unpackReservation } from './script/wire.js'
import type { NumberReader, RedisBooking, ScriptPart, ScriptRequest } from './script/wire.js'

export interface RedisKeyspaceOptions {
  /** The beginning of all keys: `prefix:format:name:shapes`. */
  readonly keyspace: string
  /** Returns the hash tag before a caller's part. Undefined without groups. */
  readonly tagOf: ((callerKey: string) => string) | undefined
  /** Microseconds. Undefined for Redis's own clock. */
  readonly clock: Clock | undefined
  readonly report: Report
  readonly policies: readonly Policy[]
  readonly penalty?: Penalty | undefined
  /** Most reservations of a key that are open, of a limiter that reserves. */
  readonly max?: number | undefined
  /** Names the policies and the penalty: keyspaces with the same id have one script. */
  readonly listId: string
  /** Returns undefined in a Cluster. */
  readonly together: () => Together | undefined
  /** Returns the group that sends the calls of the script for these shapes and this penalty. */
  readonly group: () => GroupCommit
  readonly smallestLimits: SmallestLimits
}

/** The state of one limiter under one list of shapes in Redis. Each operation is one call of one script on one key. */
export class RedisKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly hasLog: boolean
  readonly reserves: boolean
  /** A call of more units would write more entries of a sliding log, one for each, than one script call may. */
  readonly #mostUnits: number
  #group: GroupCommit
  /** The request of the latest plain `consume`, and the smallest limits at that time. */
  #lastConsume: KeyspaceRequest<Answer> | undefined
  #smallestThen: readonly number[] = []

  /**
   * Opens a limiter's state in Redis. `smallestLimits` notes the limits, as a key is kept until it is full under the smallest, which
   * refill slowest. A sliding log (`hasLog`) writes an entry for each unit, so the units of one call are bounded (`#mostUnits`).
   * `#group` sends the calls of the script for these policies, those of one moment together. `max` is the most open reservations of
   * a key, if the limiter reserves.
   */
  constructor(readonly options: RedisKeyspaceOptions) {
    this.policies = options.policies
    this.penalty = options.penalty
    this.reserves = options.max !== undefined
    options.smallestLimits.observe(options.policies)
    this.hasLog = options.policies.some(({ algorithm }) => algorithm.ring)
    this.#mostUnits = this.hasLog ? MOST_ENTRIES : Infinity
    this.#group = options.group()
  }

  /**
   * What makes reservations in this state, and settles or extends them; undefined if its limiter does not reserve. Unlike the cost
   * of a call, the cost to settle at is not bounded: it has to be charged in one step, together with the mark that is left.
   */
  get reservations(): Reservations | undefined {
    const { max } = this.options
    if (max === undefined) return undefined
    return {
      reserve: ({ key, cost, id, ttl, atEnd }, caller) => {
        if (cost > this.#mostUnits) return Promise.reject(tooCostly(cost))
        const reserving = [id, ttl, atEnd, max]
        return this.#ask({ operation: 'reserve', cost, reserving, read: unpackAnswer }, key, caller)
      },
      change: (change, caller) => {
        const { key, id, decidedAt, end, kind } = change
        // Units below 0 say that it is extended, and an `atEnd` below 0 that this stays as it is.
        const unitsTtlAtEnd = kind === 'settle' ? [change.units, 0, 0] : [-1, change.ttl, change.atEnd ?? -1]
        const token = packed([id, decidedAt, end, ...unitsTtlAtEnd, max])
        return this.#ask({ operation: 'change', token, read: unpackReservation }, key, caller)
      },
    }
  }

  get together(): Together | undefined {
    return this.options.together()
  }

  /**
   * Decides a call of `cost` units on `key` in one script call. A booking waits at most `maxWait` microseconds. A sliding log
   * writes an entry for each unit, so a cost of more than one script call may write is rejected, unless the call only reads.
   */
  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): Promise<Answer> {
    if (ask !== 'peek' && ask !== 'try' && cost > this.#mostUnits) return Promise.reject(tooCostly(cost))
    return this.#ask({ operation: ask, cost, span: maxWait, read: unpackAnswer }, key, caller)
  }

  /**
   * Decides a plain `consume` without a promise for each call: `receiver` gets the answer later, so nothing is returned.
   * @throws {InputError} INVALID_COST for a cost that would write too many entries of a log.
   */
  consume(key: string, cost: number, receiver: Receiver<Answer>, caller?: Caller): undefined {
    if (cost > this.#mostUnits) throw tooCostly(cost)
    this.send(new KeyspaceCall(this, key, this.#consumeRequest(cost), receiver, caller))
  }

  /**
   * Returns what a call on several keys sends for this part, one key and its cost. `list` is the number of the keyspace's list of
   * policies in the script. `units`, the part's share of Redis's time, is 1, or its cost on a sliding log.
   * @throws {InputError} INVALID_COST for a cost that would write too many entries of a log, one for each unit.
   */
  partOf({ key, cost, enforce }: Part, list: number): WholePart {
    if (cost > this.#mostUnits) throw tooCostly(cost)
    const units = this.hasLog ? cost : 1
    return { keyspace: this, key, list, request: this.#consumeRequest(cost), enforce, units }
  }

  /**
   * Asks Redis how a booking stands at its turn: 'lost' if the state that it was made in is gone, 'held' if the key is blocked or
   * held now, otherwise 'stands'. Of the booking's token only the first 16 bytes are sent, the two random numbers by which the
   * script finds that out; the rest is what `cancel` would restore.
   */
  confirm({ key, token }: RedisBooking): Promise<'stands' | 'lost' | 'held'> {
    return this.#ask({ operation: 'confirm', token: token.subarray(0, 16), read: unpackConfirmation }, key)
  }

  /**
   * Cancels a booking, once. Resolves to true if Redis has restored the key's state as it was before. If another call has charged
   * the key since, only the booking's units that still count are given back, and the result is false. It is false, too, if the state
   * is gone or the booking was cancelled before.
   */
  async cancel(booking: RedisBooking): Promise<boolean> {
    if (cancelled.has(booking)) return false
    cancelled.add(booking)
    const { key, at, cost, token } = booking
    return (await this.#ask({ operation: 'cancel', cost, span: at, token, read: unpackEffect }, key)) === 1
  }

  /** Applies a refund, release, charge, block, hold or reset. Returns the units that took effect under every policy, if any. */
  async correct(change: Correction, caller?: Caller): Promise<number> {
    const { kind: operation, key } = change
    if (change.kind === 'charge') return this.#charge(key, change.cost, change.counted, caller)
    return this.#ask({ operation, ...amountOf(change), read: unpackEffect }, key, caller)
  }

  /**
   * Charges a key, whether the cost fits or not, and returns the units that took effect. On a sliding log, which writes an entry
   * for each unit, a large cost takes several requests of at most MOST_ENTRIES units, so that none keeps Redis busy for longer than
   * a decision. `counted` is called after each with what counts then; for that, the request has in `span` 1 plus the units that
   * earlier ones have charged. Once the first is sent, the others are sent too, whether or not the `caller` still waits.
   */
  async #charge(key: string, cost: number, counted?: ChargeCounts, caller?: Caller): Promise<number> {
    const most = this.#mostUnits
    let effect = 0
    for (let left = cost; left > 0; left -= most) {
      const isFirst = left === cost
      try {
        const span = counted ? 1 + effect : 0
        const request = { operation: 'charge', cost: Math.min(left, most), span, counted } as const
        effect += await this.#ask({ read: unpackEffect, ...request }, key, isFirst ? caller : undefined)
      } catch (error) {
        if (isFirst || !(error instanceof StoreError)) throw error
        // An earlier request was carried out, so it is no longer true that nothing was sent.
        throw new StoreError(error.code, error.message, { cause: error, sent: true })
      }
    }
    return effect
  }

  /**
   * Sends a request about `key`, and resolves with what the request's `read` makes of Redis's reply. `slowest` are the smallest
   * limits that were ever used on this state, if a policy here has a larger one: under them a key takes longest to be full again,
   * and Redis must keep it that long. A request with a token corrects an earlier call, which the token names, and carries none, as
   * that call has set how long the key is kept. The `caller` may give up: its request is then left out if it was not sent yet.
   */
  #ask<T>(asked: Asked<T>, key: string, caller?: Caller): Promise<T> {
    const slowest = asked.token ? undefined : this.options.smallestLimits.below(this.policies)
    const request = { policies: this.policies, slowest, ...asked }
    return new Promise((answered, failed) => {
      this.send(new KeyspaceCall(this, key, request, { answered, failed }, caller))
    })
  }

  send<T>(call: KeyspaceCall<T>): void {
    if (this.#group.script === undefined) this.#group = this.options.group()
    this.#group.add(call)
  }

  /**
   * Returns the request of a plain `consume`. Like any request it carries the smallest limits that limiters of this process have
   * for the state (`slowest`), if its own are larger: under them the state takes longest until it is full again, and is kept for that
   * long. Most calls have the cost of the last one and get the same object, by which a batch sees at once that they are equal.
   */
  #consumeRequest(cost: number): KeyspaceRequest<Answer> {
    const { policies } = this
    const { smallestLimits } = this.options
    const last = this.#lastConsume
    if (last?.cost === cost && this.#smallestThen === smallestLimits.all) return last
    this.#smallestThen = smallestLimits.all
    const slowest = smallestLimits.below(policies)
    return (this.#lastConsume = { operation: 'consume', policies, cost, slowest, read: unpackAnswer })
  }
}

/** Bookings that were cancelled, or are being. */
const cancelled = new WeakSet<RedisBooking>()

/** A request, and the function that reads the caller's result from its reply. */
interface KeyspaceRequest<T> extends ScriptRequest {
  read(this: void, reply: Buffer, request: ScriptRequest, key: string): T
}

type Asked<T> = Omit<KeyspaceRequest<T>, 'policies' | 'slowest'>

/**
 * Returns what the request for a correction carries: units as `cost`, a duration as `span`, and for a release its charge as the
 * token. A block has no units: its cost says whether a penalty began it (1), so that it shortens no other block, or an operator (0).
 */
function amountOf(change: Correction): Pick<ScriptRequest, 'cost' | 'span' | 'token'> {
  if (change.kind === 'release') return { cost: change.units, token: packCharge(change.charge) }
  if ('cost' in change) return { cost: change.cost }
  if (!('duration' in change)) return {}
  return { cost: change.kind === 'block' && change.isPenalty ? 1 : 0, span: change.duration }
}

/** The error about a cost that would write more entries of a log than one script call may. */
function tooCostly(cost: number): Error {
  const bound = `cost of a call on a sliding log in Redis must be at most ${MOST_ENTRIES}`
  return expectedButGot(InputError, 'INVALID_COST', bound, cost)
}

/** One operation of a keyspace on one key, and who gets its outcome. */
class KeyspaceCall<T> implements ScriptCall {
  readonly keyspace: string
  duplicates: KeyspaceCall<T>[] | undefined = undefined
  readonly units: number
  readonly tag: string
  readonly #context: RedisKeyspaceOptions

  /**
   * Makes a call on one key of the keyspace `owner`: `request` is what the script is asked, and `receiver` gets the result. In a
   * Cluster, calls of one hash `tag` go together. `units` is the call's share of Redis's time: 1, or on a sliding log, which writes an
   * entry for each unit, the cost. The `caller` may give up before the call is sent.
   */
  constructor(
    private readonly owner: RedisKeyspace,
    readonly callerKey: string,
    readonly request: KeyspaceRequest<T>,
    readonly receiver: Receiver<T>,
    readonly caller: Caller | undefined,
  ) {
    const { options, hasLog } = owner
    this.#context = options
    this.keyspace = options.keyspace
    this.units = hasLog ? (request.cost ?? 1) : 1
    this.tag = options.tagOf?.(callerKey) ?? ''
  }

  lead(duplicates: KeyspaceCall<T>[]): void {
    this.duplicates = duplicates.length > 0 ? duplicates : undefined
  }

  /** Whether the other call may be sent with this one's argument: both are `consume`, with equal cost and limits. */
  sharesArgument(other: KeyspaceCall<T>): boolean {
    return areEqualConsumes(this.request, other.request)
  }

  /**
   * Adds the Redis key of this call to `keys`, and its request, packed as the script's argument, to `args`, if given: without, the
   * call shares the argument of another. Equal calls on the key (`duplicates`) are not sent: the request has their `count`.
   */
  addTo(keys: string[], args?: Buffer[]): void {
    const { duplicates, request } = this
    keys.push(redisKey(this.keyspace, this.callerKey, this.tag))
    if (!args) return
    const made = duplicates ? { count: 1 + duplicates.length, ...request } : request
    args.push(packRequest(made, this.#context.clock?.() ?? REDIS_TIME, nonce()))
  }

  /** Gives this call and its duplicates (equal calls on its key) their answers. Reports unreadable state that was discarded. */
  answer(reply: Buffer): void {
    const { callerKey, duplicates, request } = this
    if (hasHealed(reply)) this.#context.report({ event: 'healed', key: callerKey })
    if (!duplicates) return this.receiver.answered(request.read(reply, request, callerKey))
    const answers = unpackAnswers(reply, request.policies, 1 + duplicates.length) as readonly (Answer & T)[]
    this.receiver.answered(answers[0]!)
    for (let i = 0; i < duplicates.length; i++) duplicates[i]!.receiver.answered(answers[i + 1]!)
  }

  /** Gives this call and its duplicates (equal calls on its key), none of which was denied, the next answers in the reply. */
  answerPlain(this: KeyspaceCall<Answer>, reply: NumberReader): void {
    const { duplicates, request } = this
    const { length } = request.policies
    this.receiver.answered(reply.passed(length))
    if (duplicates) for (const call of duplicates) call.receiver.answered(reply.passed(length))
  }

  /** Fails this call, or sends it once more if the boundaries of its calendar were too far from Redis's clock (`outsideAt`). */
  fail(error: unknown): void {
    const { owner, callerKey, request, receiver, caller } = this
    const around = outsideAt(error)
    if (around === undefined) return receiver.failed(error)
    owner.send(new KeyspaceCall(owner, callerKey, { ...request, around }, receiver, caller))
  }
}

/** A part of a call on several keys. */
export interface WholePart extends ScriptPart {
  readonly keyspace: RedisKeyspace
  readonly key: string
  /** Its share of Redis's time, as that of a ScriptCall. */
  readonly units: number
}

/** Whether two requests are plain `consume` calls with the same numbers: cost, limits, capacities, smallest limits, boundaries. */
export function areEqualConsumes(a: ScriptRequest, b: ScriptRequest): boolean {
  if (a.operation !== 'consume' || b.operation !== 'consume') return false
  const areEqual = a.cost === b.cost && a.slowest === b.slowest && a.around === b.around
  return a === b || (areEqual && haveEqualNumbers(a.policies, b.policies))
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
  /** Another list whenever one of them may have changed. */
  all: readonly number[] = []

  observe(policies: readonly Policy[]): void {
    this.all = policies.map(({ limit }, i) => Math.min(limit, this.all[i] ?? limit))
  }

  /** Returns the smallest limits if one of them is below the limit of its policy here; otherwise undefined: none need be sent. */
  below(policies: readonly Policy[]): readonly number[] | undefined {
    return policies.some(({ limit }, i) => limit > this.all[i]!) ? this.all : undefined
  }
}
