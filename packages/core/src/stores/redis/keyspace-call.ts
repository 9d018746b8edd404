import type { Policy } from '../../policy.js'
import type { Answer, Caller, Report } from '../store.js'
import type { Call } from './batch.js'
import { hasHealed, packRequest, type Request, unpackAnswers } from './wire.js'

export interface KeyspaceCallOptions<T> {
  /** Of Redis, and as the caller of the limiter says it. */
  readonly key: string
  readonly callerKey: string
  readonly units: number
  readonly request: Request
  /** Finds in a reply what the caller is told. */
  readonly read: (reply: Buffer, policies: readonly Policy[], key: string) => T
  readonly caller: Caller | undefined
  /** Microseconds, or -1 for Redis's own clock. */
  readonly clock: () => number
  readonly report: Report
  readonly resolve: (answer: T) => void
  readonly reject: (error: unknown) => void
}

/** One operation on one key, and the caller who waits for it. */
export class KeyspaceCall<T> implements Call {
  readonly key: string
  readonly units: number
  readonly caller: Caller | undefined
  alike: KeyspaceCall<T>[] | undefined = undefined
  readonly #options: KeyspaceCallOptions<T>

  constructor(options: KeyspaceCallOptions<T>) {
    this.key = options.key
    this.units = options.units
    this.caller = options.caller
    this.#options = options
  }

  isLike(other: KeyspaceCall<T>): boolean {
    const [a, b] = [this.#options.request, other.#options.request]
    return (
      a.operation === 'consume' &&
      b.operation === 'consume' &&
      a.cost === b.cost &&
      a.slowest === b.slowest &&
      (a.policies === b.policies || haveSameNumbers(a.policies, b.policies))
    )
  }

  argument(times: number): Buffer {
    const { request, clock } = this.#options
    return packRequest(times === 1 ? request : { ...request, count: times }, clock(), nonce())
  }

  answer(reply: Buffer): void {
    const { request, callerKey, read, report, resolve } = this.#options
    const { policies } = request
    if (hasHealed(reply)) report({ event: 'healed', key: callerKey })
    if (!this.alike) return resolve(read(reply, policies, callerKey))
    const answers = unpackAnswers(reply, policies, callerKey, 1 + this.alike.length) as readonly (Answer &
      T)[]
    resolve(answers[0]!)
    for (let i = 0; i < this.alike.length; i++) this.alike[i]!.#options.resolve(answers[i + 1]!)
  }

  fail(error: unknown): void {
    this.#options.reject(error)
  }
}

/** Of lists with the same shapes. */
function haveSameNumbers(some: readonly Policy[], others: readonly Policy[]): boolean {
  return some.every(
    ({ limit, capacity }, i) => limit === others[i]!.limit && capacity === others[i]!.capacity,
  )
}

const NONCES = 2 ** 48

/** Tells a write, and state that was begun anew, from what was there before. */
function nonce(): number {
  return 1 + Math.floor(Math.random() * NONCES)
}
