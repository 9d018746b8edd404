/** Under this symbol each class of errors has its name, because bundlers shorten the names of classes. */
export const KIND = Symbol.for('sluice.error')

/**
 * Base class of every error that Sluice throws on purpose. `code` is stable: match on it, never on the message. Each code
 * has a section in docs/errors.md.
 * @example
 * import { createLimiter, gcra, StoreError } from '@sluice/core'
 * import { redisStore } from '@sluice/core/redis'
 * const store = redisStore('redis://localhost:6379')
 * const policies = [gcra({ limit: 100, window: '1m' })]
 * const limiter = createLimiter({ name: 'api', policies, store, onStoreError: 'throw' })
 * try {
 *   await limiter.consume('user:42')
 * } catch (error) {
 *   if (error instanceof StoreError && error.code === 'STORE_TIMEOUT') console.log('Redis is slow')
 *   else throw error
 * }
 */
export class SluiceError<Code extends SluiceErrorCode = SluiceErrorCode> extends Error {
  /** @internal */
  declare static [KIND]: string
  readonly code: Code

  /**
   * Makes an error with a stable code. Its `name` is that which the class has under KIND, as bundlers shorten the names of
   * classes; a subclass of a user has none there, and gives its own name.
   */
  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = Object.hasOwn(new.target, KIND) ? new.target[KIND] : new.target.name
    this.code = code
  }

  static {
    this[KIND] = 'SluiceError'
    Object.defineProperty(this, Symbol.hasInstance, { value: isOfKind })
  }
}

/**
 * Decides `error instanceof` this class. It also holds for errors of other copies of this package: a class of the error's
 * prototype chain counts as this class if both have the same name under KIND. A subclass of a user has none of its own, so only
 * the usual check holds for it.
 */
function isOfKind(this: typeof SluiceError, error: unknown): boolean {
  if (Function.prototype[Symbol.hasInstance].call(this, error)) return true
  if (!Object.hasOwn(this, KIND)) return false
  for (let proto = error; proto; proto = Object.getPrototypeOf(proto) as unknown) {
    const { constructor: kind } = proto as { readonly constructor?: Partial<typeof SluiceError> }
    if (kind && Object.hasOwn(kind, KIND) && kind[KIND] === this[KIND]) return true
  }
  return false
}

/** An option of a policy, limiter, store or middleware cannot work. Thrown while it is made, never by a call. */
export class PolicyError extends SluiceError<PolicyErrorCode> {
  static {
    this[KIND] = 'PolicyError'
  }
}

export type PolicyErrorCode =
  | 'INVALID_LIMIT'
  | 'INVALID_WINDOW'
  | 'INVALID_CAPACITY'
  | 'CAPACITY_TOO_LARGE'
  | 'INVALID_BUCKETS'
  | 'INVALID_NAME'
  | 'INVALID_DURATION'
  | 'INVALID_POLICIES'
  | 'INVALID_PENALTY'
  | 'INVALID_NEARING'
  | 'DUPLICATE_NAME'
  | 'NAME_REQUIRED'
  | 'INVALID_OPTION'
  | 'VERSION_MISMATCH'

/** The key, the cost or another argument of one call cannot be used. Nothing was charged. */
export class InputError extends SluiceError<InputErrorCode> {
  static {
    this[KIND] = 'InputError'
  }
}

export type InputErrorCode =
  | 'INVALID_KEY'
  | 'INVALID_COST'
  | 'INVALID_DURATION'
  | 'INVALID_POLICIES'
  | 'INVALID_PRIORITY'
  | 'INVALID_OPTION'
  | 'INVALID_OVERRIDE'
  | 'OVERRIDE_LOWERS'
  | 'TOO_MANY_OVERRIDES'

/** Why a store did not decide: `decision.degraded`, and `failure` of a StoreError. */
export type StoreFailure =
  'timeout' | 'unavailable' | 'overloaded' | 'oom' | 'readonly' | 'loading' | 'busy' | 'forbidden' | 'error'

/** The codes of failures; CLOSED and CLIENT_MISSING are mistakes in the order of calls or in the set-up. */
export type StoreErrorCode = CodeOf<StoreFailure> | 'CLOSED' | 'CLIENT_MISSING'

type CodeOf<Failure extends StoreFailure> = `STORE_${Uppercase<Failure>}`

/** Every code. RATE_LIMIT_EXCEEDED is thrown by @sluice/outbound. */
export type SluiceErrorCode =
  | PolicyErrorCode
  | InputErrorCode
  | StoreErrorCode
  | 'ALREADY_SETTLED'
  | 'RESERVATION_DENIED'
  | 'RESERVATION_ENDED'
  | 'RATE_LIMIT_EXCEEDED'

export interface StoreErrorOptions extends ErrorOptions {
  /**
   * Whether the call may have been carried out.
   * @default true for 'timeout', 'unavailable' and 'error': a server that refused a call has not carried it out
   */
  readonly sent?: boolean
}

/** The store is closed or could not answer. `cause` holds the Redis client's own error, if there is one. */
export class StoreError extends SluiceError<StoreErrorCode> {
  static {
    this[KIND] = 'StoreError'
  }
  /** Why the store did not decide; undefined for CLOSED and CLIENT_MISSING. */
  readonly failure: StoreFailure | undefined
  /** Whether the call may have been carried out. If false, it was not, and may be repeated. */
  readonly sent: boolean

  /**
   * Makes an error whose `failure` follows from the code: STORE_TIMEOUT is 'timeout'. `sent`, whether the call may have been
   * carried out, follows from the code unless it is given: after a timeout, a lost connection or an unknown error nothing else
   * can be assumed.
   */
  constructor(code: StoreErrorCode, message: string, { sent, ...options }: StoreErrorOptions = {}) {
    super(code, message, options)
    const failure = code.slice(STORE.length).toLowerCase() as StoreFailure
    this.failure = code.startsWith(STORE) ? failure : undefined
    this.sent = sent ?? /_(?:TIMEOUT|UNAVAILABLE|ERROR)$/.test(code)
  }
}

const STORE = 'STORE_'

/** The code of an error about this failure. */
export function codeOf(failure: StoreFailure): StoreErrorCode {
  return `${STORE}${failure.toUpperCase() as Uppercase<StoreFailure>}`
}

/**
 * Makes an error of the class `Kind` with this code, whose message is `what` was expected, followed by the `value` that came, and
 * by what to write `instead`.
 */
export function expectedButGot<Code extends SluiceErrorCode>(
  Kind: new (code: Code, message: string) => SluiceError,
  code: NoInfer<Code>,
  what: string,
  value: unknown,
  instead = '',
): SluiceError {
  return new Kind(code, `${what}, got ${shown(value)}${instead}`)
}

/**
 * A value as messages show it: a text in quotes and cut after 40 characters, a number as it is, and of objects only what they
 * are.
 */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`
  if (Array.isArray(value)) return `an array of ${value.length}`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
