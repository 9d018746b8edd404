import { haveEqualNumbers } from '../../algorithms/contract/policy.js'
import { StoreError } from '../../values/errors.js'
import type { Answer, Caller, Receiver, Report } from '../store.js'
import type { Bytes } from './redis-connection.js'
import { redisKey } from './redis-key.js'
import { hasHealed, type PackedReply, packRequest, type ScriptRequest, unpackAnswers } from './script/wire.js'

/** One call of a script on one key, for one caller. */
export interface ScriptCall {
  /** The beginning of `key`, and the key that was passed to the limiter; together they are as unique. */
  readonly keyspace: string
  readonly callerKey: string
  /** The key in Redis. */
  readonly key: string
  /** Its share of Redis's time: 1, or its cost on a log, which writes each unit. */
  readonly units: number
  readonly caller: Caller | undefined
  /** Later calls of the batch that are equal to this one. */
  alike: ScriptCall[] | undefined
  /** Whether `other` has the same argument, so that the two can share it, and be counted as one where the keys are equal. */
  isLike(other: ScriptCall): boolean
  /** The script's argument for this call made `times` times in a row. */
  argument(times: number): Bytes
  /** Resolves this call and the equal ones with the script's reply. */
  answer(reply: Buffer): void
  /** The same where the reply is packed with those of other keys. */
  answerPlain(reply: PackedReply): void
  /** Rejects this call alone. */
  fail(error: unknown): void
}

/** What all calls of a keyspace share. */
export interface CallContext {
  /** The beginning of all keys: `prefix:format:name:shapes`. */
  readonly keyspace: string
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly report: Report
}

/** Reads the caller's result from a reply. */
export type ReplyReader<T> = (reply: Buffer, request: ScriptRequest, key: string) => T

/** One operation of a keyspace on one key, and who gets its outcome. */
export class KeyspaceCall<T> implements ScriptCall {
  alike: KeyspaceCall<T>[] | undefined = undefined

  constructor(
    readonly context: CallContext,
    readonly callerKey: string,
    readonly units: number,
    readonly request: ScriptRequest,
    readonly read: ReplyReader<T>,
    readonly receiver: Receiver<T>,
    readonly caller: Caller | undefined,
  ) {}

  get keyspace(): string {
    return this.context.keyspace
  }

  get key(): string {
    return redisKey(this.context.keyspace, this.callerKey)
  }

  isLike(other: KeyspaceCall<T>): boolean {
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
    const { callerKey, alike, request } = this
    if (hasHealed(reply)) this.context.report({ event: 'healed', key: callerKey })
    if (!alike) return this.receiver.answered(this.read(reply, request, callerKey))
    const answers = unpackAnswers(reply, request.policies, 1 + alike.length) as readonly (Answer & T)[]
    this.receiver.answered(answers[0]!)
    for (let i = 0; i < alike.length; i++) alike[i]!.receiver.answered(answers[i + 1]!)
  }

  /** A plain call is a consume. */
  answerPlain(this: KeyspaceCall<Answer>, reply: PackedReply): void {
    const { alike, request } = this
    const { length } = request.policies
    this.receiver.answered(reply.next(length))
    if (alike) for (const call of alike) call.receiver.answered(reply.next(length))
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

/** The calls with those that share an argument last. Usually all share one, which is then packed and sent once. */
export function prepared(gathered: readonly ScriptCall[]): {
  calls: readonly ScriptCall[]
  args: readonly Bytes[]
} {
  if (gathered.length === 1) return { calls: gathered, args: [argumentOf(gathered[0]!)] }
  const common = gathered.find(({ alike }) => !alike)
  const own: ScriptCall[] = []
  const sharing: ScriptCall[] = []
  for (const call of gathered) {
    const shares = call === common || (common && !call.alike && call.isLike(common))
    ;(shares ? sharing : own).push(call)
  }
  const args = own.map(argumentOf)
  if (common) args.push(common.argument(1))
  return { calls: own.length === 0 ? sharing : [...own, ...sharing], args }
}

function argumentOf(call: ScriptCall): Bytes {
  return call.argument(1 + (call.alike?.length ?? 0))
}

/** What a script replied: to plain calls of several keys in one piece, to each other key by itself. */
export interface Replies {
  readonly packed: PackedReply | undefined
  /** In the order of their keys. */
  readonly own: readonly (Buffer | Error)[]
}

export function settleAll(calls: readonly ScriptCall[], { packed, own }: Replies): void {
  let next = 0
  for (const call of calls) {
    try {
      if (packed?.isPlain()) call.answerPlain(packed)
      else settle(call, own[next++]!)
    } catch (error) {
      failAll(call, error)
    }
  }
}

function settle(call: ScriptCall, reply: Buffer | Error): void {
  if (reply instanceof Error) failAll(call, reply)
  else call.answer(reply)
}

export function failAll(call: ScriptCall, error: unknown): void {
  call.fail(error)
  if (call.alike) for (const other of call.alike) other.fail(error)
}

/** The calls whose callers still wait. */
export function stillWaitedFor(calls: ScriptCall[]): ScriptCall[] {
  return calls.some(isForGone) ? withoutGone(calls) : calls
}

function isForGone({ caller, alike }: ScriptCall): boolean {
  return caller?.gone === true || (alike !== undefined && alike.some(isForGone))
}

/** Rejects the calls whose callers are gone, and groups the others by their first equal call again. */
function withoutGone(calls: readonly ScriptCall[]): ScriptCall[] {
  const left: ScriptCall[] = []
  for (const call of calls) {
    const [first, ...alike] = [call, ...(call.alike ?? [])].filter((each) => {
      if (each.caller?.gone)
        each.fail(new StoreError('STORE_TIMEOUT', 'the caller gave up before it was sent', { sent: false }))
      return !each.caller?.gone
    })
    if (!first) continue
    first.alike = alike.length > 0 ? alike : undefined
    left.push(first)
  }
  return left
}

/** From now on, a call that fails may have been carried out. */
export function markSent({ caller, alike }: ScriptCall): void {
  if (caller) caller.unsent = false
  if (alike) for (const other of alike) markSent(other)
}
