import { PolicyError } from './errors.js'

/** What to write in place of an option, by its former name here or its name in another package. */
export type Replacements = Readonly<Record<string, string>>

/** The same replacement for several options. */
export function each(names: readonly string[], replacement: string): Replacements {
  return Object.fromEntries(names.map((name) => [name, replacement]))
}

/** An error for an option that does not exist, with what to write in its place if that is known. */
export function noSuchOption(name: string, replacements: Replacements): PolicyError {
  const known = Object.hasOwn(replacements, name) ? replacements[name] : undefined
  return new PolicyError('INVALID_OPTION', `there is no option '${name}'${known ? `: ${known}` : ''}`)
}

/**
 * An option that was ignored would change what calls do. One that is undefined counts as left out.
 * @throws {PolicyError} INVALID_OPTION for an option that is not in `known`.
 */
export function checkOptionNames(
  options: object,
  known: Readonly<Record<string, true>>,
  replacements: Replacements,
): void {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && known[name] !== true) throw noSuchOption(name, replacements)
  }
}
