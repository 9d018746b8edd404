import { PolicyError } from '@sluice/core'
import { isPromise } from '@sluice/core/internal'

/**
 * Returns the text that a user's function, given as the option of this name, has returned. Its result comes unchecked, so
 * it may be of any type. The rejection of a promise is caught, since an unhandled one would end the process.
 * @throws {PolicyError} INVALID_OPTION if it returned anything else.
 */
export function returnedText(option: string, returned: unknown): string {
  if (typeof returned === 'string') return returned
  // A promise is an error already; if it rejects as well, unhandled, that would end the process.
  const isLater = isPromise(returned)
  if (isLater) Promise.resolve(returned).catch(() => {})
  const got = isLater ? 'a promise' : returned === Object(returned) ? 'an object' : String(returned)
  throw new PolicyError('INVALID_OPTION', `${option} must return a string, got ${got}`)
}
