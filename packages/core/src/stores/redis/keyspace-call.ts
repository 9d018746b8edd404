import { haveEqualNumbers } from '../../algorithms/contract/policy.js'
import type { Answer, Caller, Report } from '../store.js'
import type { ScriptCall } from './script-call.js'
import { hasHealed, packRequest, type ScriptRequest, unpackAnswers } from './script/wire.js'

/** What all calls of a keyspace share. */
export interface CallContext {
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly report: Report
}

/** Reads the caller's result from a reply. */
export type ReplyReader<T> = (reply: Buffer, request: ScriptRequest, key: string) => T

/** One operation of a keyspace on one key, and the promise of its caller. */
export class KeyspaceCall<T> implements ScriptCall {
  alike: KeyspaceCall<T>[] | undefined = undefined

  /** `key` is the key in Redis, `callerKey` the one that was passed to the limiter. */
  constructor(
    readonly key: string,
    readonly callerKey: string,
    readonly units: number,
    readonly request: ScriptRequest,
    readonly read: ReplyReader<T>,
    readonly caller: Caller | undefined,
    readonly context: CallContext,
    readonly resolve: (answer: T) => void,
    readonly fail: (error: unknown) => void,
  ) {}

  isLike(other: KeyspaceCall<T>): boolean {
    const [a, b] = [this.request, other.request]
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
    if (!alike) return this.resolve(this.read(reply, request, callerKey))
    const answers = unpackAnswers(reply, request.policies, 1 + alike.length) as readonly (Answer & T)[]
    this.resolve(answers[0]!)
    for (let i = 0; i < alike.length; i++) alike[i]!.resolve(answers[i + 1]!)
  }
}

const NONCES = 2 ** 48

/** Random, so that each write, and state that is begun anew, differs from the state before. */
function nonce(): number {
  return 1 + Math.floor(Math.random() * NONCES)
}
