import { expected, InputError, StoreError } from '../../values/errors.js'
import { haveEqualNumbers, type Policy } from '../../algorithms/contract/policy.js'
import { MOST_ENTRIES } from '../../algorithms/contract/state.js'
import type { Penalty } from '../penalty.js'
import type { Answer, Ask, Caller, Correction, Keyspace, Receiver, Report } from '../store.js'
import type { GroupCommit, ScriptCall } from './group-commit.js'
import { redisKey } from './redis-key.js'
import {
  hasHealed,
  packCharge,
  type PackedReply,
  packRequest,
  type RedisBooking,
  type ScriptRequest,
  unpackAnswer,
  unpackAnswers,
  unpackCancellation,
  unpackConfirmation,
  unpackEffect,
} from './script/wire.js'

/** The values that all calls of a keyspace share. */
interface CallContext {
  /** The beginning of all keys: `prefix:format:name:shapes`. */
  readonly keyspace: string
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly report: Report
}

export interface RedisKeyspaceOptions extends CallContext {
  readonly policies: readonly Policy[]
  readonly penalty?: Penalty | undefined
  /** Returns what sends the calls of the script for these shapes and this penalty. */
  readonly group: () => GroupCommit
  readonly smallestLimits: SmallestLimits
}

/** The state of one limiter under one list of shapes in Redis. Each operation is one call of one script on one key. */
export class RedisKeyspace implements Keyspace {
  readonly policies: readonly Policy[]
  readonly penalty: Penalty | undefined
  readonly #options: RedisKeyspaceOptions
  readonly #hasLog: boolean
  /** The smallest limits, as of a count of changes. */
  #slowest: { readonly changes: number; readonly limits: readonly number[] | undefined } | undefined

  /** The latest one: most calls of a keyspace have the same cost. */
  #consumption: ScriptRequest | undefined

  constructor(options: RedisKeyspaceOptions) {
    this.#options = options
    this.policies = options.policies
    this.penalty = options.penalty
    options.smallestLimits.observe(options.keyspace, options.policies)
    this.#hasLog = options.policies.some(({ algorithm }) => algorithm.ring)
  }

  decide(ask: Ask, key: string, cost: number, maxWait: number, caller?: Caller): Promise<Answer> {
    if (ask !== 'peek' && this.#isTooCostly(cost)) return Promise.reject(tooCostly(cost))
    return this.#ask({ operation: ask, cost, span: maxWait }, key, unpackAnswer, caller)
  }

  consume(key: string, cost: number, receiver: Receiver<Answer>, caller?: Caller): undefined {
    if (this.#isTooCostly(cost)) throw tooCostly(cost)
    const slowest = this.#slowestLimits()
    let request = this.#consumption
    if (!request || request.cost !== cost || request.slowest !== slowest) {
      request = { operation: 'consume', policies: this.policies, cost, slowest }
      this.#consumption = request
    }
    this.#send(request, key, unpackAnswer, receiver, caller)
  }

  confirm({ key, token }: RedisBooking): Promise<'stands' | 'lost' | 'held'> {
    return this.#ask({ operation: 'confirm', token: token.subarray(0, 16) }, key, unpackConfirmation)
  }

  async cancel(booking: RedisBooking): Promise<boolean> {
    if (booking.isCancelled) return false
    booking.isCancelled = true
    const { key, at, cost, token } = booking
    return this.#ask({ operation: 'cancel', cost, span: at, token }, key, unpackCancellation)
  }

  async correct(change: Correction): Promise<number> {
    const { kind: operation, key } = change
    if (change.kind === 'charge') return this.#charge(key, change.cost)
    return this.#ask({ operation, ...amountOf(change) }, key, unpackEffect)
  }

  /** A charge on a log takes several calls, each as short as a decision. */
  async #charge(key: string, cost: number): Promise<number> {
    const most = this.#hasLog ? MOST_ENTRIES : cost
    let effect = 0
    for (let left = cost; left > 0; left -= most) {
      try {
        effect += await this.#ask({ operation: 'charge', cost: Math.min(left, most) }, key, unpackEffect)
      } catch (error) {
        if (left < cost && error instanceof StoreError) throw partly(error)
        throw error
      }
    }
    return effect
  }

  #ask<T>(asked: Asked, key: string, read: ReplyReader<T>, caller?: Caller): Promise<T> {
    const slowest = asked.token ? undefined : this.#slowestLimits()
    const request = { ...asked, policies: this.policies, slowest }
    return new Promise((answered, failed) => {
      this.#send(request, key, read, { answered, failed }, caller)
    })
  }

  #send<T>(
    request: ScriptRequest,
    key: string,
    read: ReplyReader<T>,
    receiver: Receiver<T>,
    caller: Caller | undefined,
  ): void {
    const call = new KeyspaceCall(this.#options, key, request, read, receiver)
    if (this.#hasLog) call.units = request.cost ?? 1
    call.caller = caller
    this.#options.group().add(call)
  }

  #isTooCostly(cost: number): boolean {
    return this.#hasLog && cost > MOST_ENTRIES
  }

  #slowestLimits(): readonly number[] | undefined {
    const { keyspace, smallestLimits, policies } = this.#options
    const { changes } = smallestLimits
    if (this.#slowest?.changes !== changes) {
      this.#slowest = { changes, limits: smallestLimits.below(keyspace, policies) }
    }
    return this.#slowest.limits
  }
}

type Asked = Omit<ScriptRequest, 'policies' | 'slowest'>

/** The part of a correction that says how much. */
function amountOf(change: Correction): Omit<Asked, 'operation'> {
  if (change.kind === 'release') return { cost: change.units, token: packCharge(change.charge) }
  if ('cost' in change) return { cost: change.cost }
  return 'duration' in change ? { span: change.duration } : {}
}

function tooCostly(cost: number): Error {
  const bound = `cost of a call on a sliding log in Redis must be at most ${MOST_ENTRIES}`
  return expected(InputError, 'INVALID_COST', bound, cost)
}

/** The failure of a charge that was carried out in part. */
function partly(cause: StoreError): StoreError {
  return new StoreError(cause.code, cause.message, { cause, sent: true })
}

/** Reads the caller's result from a reply. */
type ReplyReader<T> = (reply: Buffer, request: ScriptRequest, key: string) => T

/** One operation of a keyspace on one key, and who gets its outcome. */
class KeyspaceCall<T> implements ScriptCall {
  duplicates: KeyspaceCall<T>[] | undefined = undefined
  units = 1
  caller: Caller | undefined = undefined

  constructor(
    readonly context: CallContext,
    readonly callerKey: string,
    readonly request: ScriptRequest,
    readonly read: ReplyReader<T>,
    readonly receiver: Receiver<T>,
  ) {}

  get keyspace(): string {
    return this.context.keyspace
  }

  get key(): string {
    return redisKey(this.context.keyspace, this.callerKey)
  }

  sharesArgument(other: KeyspaceCall<T>): boolean {
    const a = this.request
    const b = other.request
    return (
      a.operation === 'consume' &&
      b.operation === 'consume' &&
      a.cost === b.cost &&
      a.slowest === b.slowest &&
      haveEqualNumbers(a.policies, b.policies)
    )
  }

  argument(times: number): Buffer {
    const request = times === 1 ? this.request : { ...this.request, count: times }
    return packRequest(request, this.context.clock(), nonce())
  }

  answer(reply: Buffer): void {
    const { callerKey, duplicates, request } = this
    if (hasHealed(reply)) this.context.report({ event: 'healed', key: callerKey })
    if (!duplicates) return this.receiver.answered(this.read(reply, request, callerKey))
    const answers = unpackAnswers(reply, request.policies, 1 + duplicates.length) as readonly (Answer & T)[]
    this.receiver.answered(answers[0]!)
    for (let i = 0; i < duplicates.length; i++) duplicates[i]!.receiver.answered(answers[i + 1]!)
  }

  /** A plain call is a consume. */
  answerPlain(this: KeyspaceCall<Answer>, reply: PackedReply): void {
    const { duplicates, request } = this
    const { length } = request.policies
    this.receiver.answered(reply.next(length))
    if (duplicates) for (const call of duplicates) call.receiver.answered(reply.next(length))
  }

  fail(error: unknown): void {
    this.receiver.failed(error)
  }
}

const NONCES = 2 ** 48

/** Random, so that each write, and state that is begun anew, differs from the state before. */
function nonce(): number {
  return 1 + Math.floor(Math.random() * NONCES)
}

/**
 * The smallest limit of each policy that this process has seen, per keyspace. Usage recorded under a higher tier must still
 * count when a lower tier asks, so a key's TTL covers a full refill at these limits. A store has one of these, because
 * each list of policies has a keyspace object of its own.
 */
export class SmallestLimits {
  readonly #smallest = new Map<string, readonly number[]>()
  readonly #most: number
  /** Number of times a smaller limit was seen; until it changes, `below` returns the same. */
  changes = 0

  /** Remembers at most `most` keyspaces; beyond that, the one observed first is forgotten. */
  constructor(most = Infinity) {
    this.#most = most
  }

  /** Takes the limits of a list into account. */
  observe(keyspace: string, policies: readonly Policy[]): void {
    const known = this.#smallest.get(keyspace)
    if (known && policies.every(({ limit }, i) => limit >= known[i]!)) return
    const smallest = policies.map(({ limit }, i) => Math.min(limit, known?.[i] ?? limit))
    this.#smallest.set(keyspace, smallest)
    if (this.#smallest.size > this.#most) this.#smallest.delete(this.#smallest.keys().next().value!)
    this.changes++
  }

  /** The smallest limits of the keyspace, in the order of the policies; undefined if none is below theirs. */
  below(keyspace: string, policies: readonly Policy[]): readonly number[] | undefined {
    this.observe(keyspace, policies)
    const smallest = this.#smallest.get(keyspace)!
    return policies.some(({ limit }, i) => limit > smallest[i]!) ? smallest : undefined
  }
}
