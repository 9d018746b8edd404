import { expected, PolicyError } from '../values/errors.js'

/** What an option must be and is not. */
export function invalidOption(what: string, value: unknown): Error {
  return expected(PolicyError, 'INVALID_OPTION', what, value)
}

/** Two options that say the same thing. */
export function atOdds(name: string, other: string): Error {
  return new PolicyError('INVALID_OPTION', `${name} and ${other} exclude each other: leave one of them out`)
}
