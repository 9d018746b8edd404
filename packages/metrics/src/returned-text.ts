import { PolicyError } from '@sluice/core'

/** The text that a caller's function returned of a key. @throws {PolicyError} INVALID_OPTION for what is no string. */
export function returnedText(option: string, returned: unknown): string {
  if (typeof returned === 'string') return returned
  const isPromise = returned instanceof Promise
  // Otherwise its rejection would end the process.
  if (isPromise) returned.catch(() => {})
  const got = isPromise ? 'a promise' : returned === Object(returned) ? 'an object' : String(returned)
  throw new PolicyError('INVALID_OPTION', `${option} must return a string, got ${got}`)
}
