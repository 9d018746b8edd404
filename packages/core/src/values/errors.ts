/** Under it each class of errors names itself: bundlers shorten the names of classes. */
const KIND = Symbol.for('sluice.error')

/**
 * Every error that Sluice throws on purpose. `code` is stable: match on it, never on the message.
 * Each code has a section in docs/errors.md.
 */
export class SluiceError extends Error {
  /** @internal */
  static readonly [KIND]: string = 'SluiceError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = Object.hasOwn(new.target, KIND) ? new.target[KIND] : new.target.name
    this.code = code
  }

  static {
    Object.defineProperty(this, Symbol.hasInstance, { value: isOfKind })
  }
}

/** `instanceof` for errors of every copy of this package in the process: classes of one kind count as one class. */
function isOfKind(this: typeof SluiceError, error: unknown): boolean {
  if (Function.prototype[Symbol.hasInstance].call(this, error)) return true
  if (typeof error !== 'object' || error === null || !Object.hasOwn(this, KIND)) return false
  for (let proto: object | null = error; proto; proto = Object.getPrototypeOf(proto) as object | null) {
    const { constructor: kind } = proto as { readonly constructor?: Partial<typeof SluiceError> }
    if (kind && Object.hasOwn(kind, KIND) && kind[KIND] === this[KIND]) return true
  }
  return false
}

/** A limiter or a policy was described with something that cannot work. Thrown while it is made, never per call. */
export class PolicyError extends SluiceError {
  static override readonly [KIND]: string = 'PolicyError'
}

/** One call was given a key, cost or duration that cannot be used. Nothing was charged. */
export class InputError extends SluiceError {
  static override readonly [KIND]: string = 'InputError'
}

/**
 * Why a store did not decide, and what follows from each reason:
 * - `isSilence`: nothing answered, or a server that has no time for any call, so the next call would fail as well.
 *   Failures of this kind open the circuit.
 * - `sent`: the call may have been carried out although it failed. A server that refused a call has not carried it out.
 */
export const STORE_FAILURES = {
  timeout: { code: 'STORE_TIMEOUT', isSilence: true, sent: true },
  unavailable: { code: 'STORE_UNAVAILABLE', isSilence: true, sent: true },
  overloaded: { code: 'STORE_OVERLOADED', isSilence: false, sent: false },
  oom: { code: 'STORE_OOM', isSilence: false, sent: false },
  readonly: { code: 'STORE_READONLY', isSilence: false, sent: false },
  loading: { code: 'STORE_LOADING', isSilence: true, sent: false },
  busy: { code: 'STORE_BUSY', isSilence: true, sent: false },
  forbidden: { code: 'STORE_FORBIDDEN', isSilence: false, sent: false },
  error: { code: 'STORE_ERROR', isSilence: false, sent: true },
} as const

/** A reason of `STORE_FAILURES`; also what `decision.degraded` says. */
export type StoreFailure = keyof typeof STORE_FAILURES

/** The codes of failures, and those of a set-up or an order of calls that no waiting mends. */
export type StoreErrorCode = (typeof STORE_FAILURES)[StoreFailure]['code'] | 'CLOSED' | 'CLIENT_MISSING'

export interface StoreErrorOptions extends ErrorOptions {
  /** Whether the call may have been carried out; default as the failure says. */
  readonly sent?: boolean
}

/** The store is closed or could not answer. `cause` holds the client's own error where there is one. */
export class StoreError extends SluiceError {
  static override readonly [KIND]: string = 'StoreError'
  /** Why the store did not decide; undefined for CLOSED and CLIENT_MISSING. */
  readonly failure: StoreFailure | undefined
  /** Whether the call may have been carried out. false: it surely was not, and may be made again. */
  readonly sent: boolean

  constructor(code: StoreErrorCode, message: string, { sent, ...options }: StoreErrorOptions = {}) {
    super(code, message, options)
    this.failure = FAILURE_BY_CODE.get(code)
    this.sent = sent ?? (this.failure !== undefined && STORE_FAILURES[this.failure].sent)
  }
}

const FAILURE_BY_CODE = new Map<string, StoreFailure>(
  Object.entries(STORE_FAILURES).map(([failure, { code }]) => [code, failure as StoreFailure]),
)

type ErrorClass = new (code: string, message: string) => SluiceError

/** What `value` must be and is not; the message ends with what came. */
export function expected(Kind: ErrorClass, code: string, what: string, value: unknown): SluiceError {
  return new Kind(code, `${what}, got ${shown(value)}`)
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (Array.isArray(value)) return `an array of ${value.length}`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
