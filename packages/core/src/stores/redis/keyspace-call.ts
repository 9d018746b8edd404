import { haveEqualNumbers } from '../../algorithms/contract/policy.js'
import type { Answer, Caller, Report } from '../store.js'
import type { Call } from './calls.js'
import { hasHealed, packRequest, type Request, unpackAnswers } from './script/wire.js'

/** What the calls of a keyspace have in common. */
export interface CallContext {
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly report: Report
}

/** Finds in a reply what the caller is told. */
export type Read<T> = (reply: Buffer, request: Request, key: string) => T

/** One operation on one key, and the caller who waits for it. */
export class KeyspaceCall<T> implements Call {
  alike: KeyspaceCall<T>[] | undefined = undefined

  /** `key` is that of Redis, `callerKey` as the caller of the limiter says it. */
  constructor(
    readonly key: string,
    readonly callerKey: string,
    readonly units: number,
    readonly request: Request,
    readonly read: Read<T>,
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

/** Tells a write, and state that was begun anew, from what was there before. */
function nonce(): number {
  return 1 + Math.floor(Math.random() * NONCES)
}
