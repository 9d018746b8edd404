import { haveEqualNumbers } from '../../algorithms/contract/policy.js'
import type { Answer, Caller, Receiver, Report } from '../store.js'
import { redisKey } from './redis-key.js'
import type { ScriptCall } from './script-call.js'
import type { PackedReply } from './script/packed-reply.js'
import { hasHealed, packRequest, type ScriptRequest, unpackAnswers } from './script/wire.js'

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
