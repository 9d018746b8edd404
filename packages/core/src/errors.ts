/**
 * Every error that Sluice throws on purpose. `code` is stable: match on it, never on the message.
 * Each code has a section in docs/errors.md.
 */
export class SluiceError extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** A limiter or a policy was described with something that cannot work. Thrown while it is made, never per call. */
export class PolicyError extends SluiceError {}

/** One call was given a key, cost or duration that cannot be used. Nothing was charged. */
export class InputError extends SluiceError {}

/** The store is closed or could not answer. `cause` holds the client's own error where there is one. */
export class StoreError extends SluiceError {}

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
