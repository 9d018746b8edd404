import { PolicyError } from '@sluice/core'
import { isPromise } from '@sluice/core/internal'

/**
 * Checks and returns the text that a user's function, given as the option of this name, has `returned`.
 * @throws {PolicyError} INVALID_OPTION if it is anything else. The rejection of a promise is caught then, since an unhandled one
 * would end the process.
 */
export function returnedText(option: string, returned: unknown): string {
  if (typeof returned === 'string') return returned
  const isOfPromise = isPromise(returned)
  if (isOfPromise) Promise.resolve(returned).catch(() => {})
  const got = isOfPromise ? 'a promise' : returned === Object(returned) ? 'an object' : String(returned)
  throw new PolicyError('INVALID_OPTION', `${option} must return a string, got ${got}`)
}
