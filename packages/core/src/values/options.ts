import type { Clock } from './clock.js'
import { type Duration, durationsFrom, meantBy, millisecondsOf } from './duration.js'
import { expectedButGot, PolicyError, type SluiceError, type SluiceErrorCode } from './errors.js'

/*
 * The one language of options. Each object of options has one declaration, which gives every name, its bounds, its default and
 * its messages; `readOptions` checks an object by it and returns the settings. A name that is not declared is an error, because an
 * option that was ignored would change what calls do. An option that is undefined counts as left out.
 */

/** One option: the values that it accepts, and the setting that each becomes. */
export interface Option<Setting> {
  /** The accepted values, as a message names them: 'a whole number from 1 to 10'. */
  readonly accepts: string
  /** The setting of an option that is left out. */
  readonly otherwise: Setting
  /** Whether it must be given. */
  readonly isRequired?: true
  /** The code of the error for any other value; default INVALID_OPTION. */
  readonly code?: SluiceErrorCode | undefined
  /** The accepted values as data, for options that may stand in a file. */
  readonly domain?: Domain | undefined
  /** The setting for a value, or `REFUSED`. A check that explains itself throws. */
  parse(value: unknown, name: string): Setting | typeof REFUSED
}

/** Numbers from `least` to `most`, durations in milliseconds of both, values of a list, or texts of a pattern. */
export type Domain =
  | { readonly least: number; readonly most: number; readonly isDuration?: true }
  | { readonly values: readonly unknown[] }
  | { readonly pattern: RegExp }

/** The result of `parse` for a value that is not accepted. */
export const REFUSED = Symbol('refused')

export type Declaration = Readonly<Record<string, Option<unknown>>>

/** A declaration with an entry for each option of an interface, and no further entry. */
export type DeclarationOf<Options> = { readonly [Name in keyof Required<Options>]: Option<unknown> }

export type Settings<D extends Declaration> = {
  readonly [Name in keyof D]: D[Name] extends Option<infer Setting> ? Setting : never
}

/** The words of errors about an object of options. */
export interface About {
  /** The taker of the options: 'createLimiter', 'penalty'. */
  readonly what: string
  /** Put before the names of options in messages: 'penalty.'. */
  readonly prefix?: string
  /** @default PolicyError */
  readonly error?: ErrorClass
  /** The code of every error about the object, in place of the options' own. */
  readonly code?: SluiceErrorCode
  /**
   * The advice for an option that does not exist.
   * @default the command that finds options of other packages
   */
  readonly advice?: string
}

/** PolicyError or InputError, each of which takes some of the codes. */
export type ErrorClass = new (code: never, message: string) => SluiceError

/**
 * Checks an object of options by its declaration and returns the settings: for each declared option its value as `parse` returns
 * it, or its default if it is left out. `about` has the words of messages.
 * @throws PolicyError, or `about.error`: INVALID_OPTION, or the option's own code.
 */
export function readOptions<D extends Declaration>(declaration: D, given: object, about: About): Settings<D> {
  checkNames(declaration, given, about)
  const settings: Record<string, unknown> = {}
  for (const [name, declared] of Object.entries(declaration)) {
    settings[name] = readOption(declared, (given as Record<string, unknown>)[name], name, about)
  }
  return settings as Settings<D>
}

/**
 * Checks the value of one option, `name`, by its declaration and returns the setting; the option's default if the value is
 * undefined and need not be given. The message names the option behind `about.prefix`.
 * @throws as `readOptions`.
 */
export function readOption<Setting>(
  declared: Option<Setting>,
  value: unknown,
  name: string,
  about: About,
): Setting {
  if (value === undefined && !declared.isRequired) return declared.otherwise
  const { prefix = '', error = PolicyError, code = declared.code ?? 'INVALID_OPTION' } = about
  const setting = declared.parse(value, prefix + name)
  if (setting !== REFUSED) return setting
  const { accepts, domain } = declared
  const instead = domain && 'least' in domain ? meantBy(value, domain.isDuration) : ''
  throw expectedButGot(anyCode(error), code, `${prefix}${name} must be ${accepts}`, value, instead)
}

/**
 * Checks that `given` is an object of options and has no option that is not declared; values are not checked. An option that is
 * undefined counts as left out, and inherited ones are not options.
 * @throws as `readOptions`.
 */
export function checkNames(declaration: Declaration, given: object, about: About): void {
  const { what, error = PolicyError, code = 'INVALID_OPTION' } = about
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw expectedButGot(anyCode(error), code, `${what} takes an object of options`, given)
  }
  // Faster than over Object.keys, which makes a list.
  for (const name in given) {
    if (Object.hasOwn(declaration, name) || (given as Record<string, unknown>)[name] === undefined) continue
    if (!Object.hasOwn(given, name)) continue
    throw new (anyCode(error))(code, unknownOption(name, Object.keys(declaration), about))
  }
}

/** The class of errors, typed to take every code: an option's code may be of either class. */
function anyCode(error: ErrorClass): new (code: SluiceErrorCode, message: string) => SluiceError {
  return error as new (code: SluiceErrorCode, message: string) => SluiceError
}

/**
 * Returns the message about an option that does not exist. It names a similar one of the existing `names`, if there is one, and gives
 * `advice`, by default where to look up the options of other packages. `what` is the function that was called.
 */
function unknownOption(name: string, names: readonly string[], { what, advice }: About): string {
  const near = nearestTo(name, names)
  const own = near === undefined ? '' : `did you mean '${near}'? `
  const other = advice ?? `npx @sluice/cli option ${name} finds that of another package`
  return `there is no option '${name}' of ${what}: ${own}${other}`
}

/**
 * Returns the one of `names` that `name` was probably meant to be: the one that is the fewest edits away, if these are at most a
 * third of the letters of `name`; otherwise undefined. Upper and lower case count as equal.
 */
export function nearestTo(name: string, names: readonly string[]): string | undefined {
  const mostEdits = Math.floor((name.length + 1) / 3)
  const [near] = names
    .map((known) => ({ known, edits: editsBetween(name.toLowerCase(), known.toLowerCase()) }))
    .sort((one, other) => one.edits - other.edits)
  return near && near.edits <= mostEdits ? near.known : undefined
}

/**
 * The edit distance of two names (Levenshtein): how many letters are left out, added or replaced. `row[j]` is the distance of the
 * letters of `one` so far from the first `j` of `other`.
 */
function editsBetween(one: string, other: string): number {
  const row = Array.from({ length: other.length + 1 }, (_, j) => j)
  for (let i = 0; i < one.length; i++) {
    let aboveLeft = row[0]!
    row[0] = i + 1
    for (let j = 1; j <= other.length; j++) {
      const above = row[j]!
      const left = row[j - 1]!
      const replacing = one[i] === other[j - 1] ? 0 : 1
      row[j] = Math.min(above + 1, left + 1, aboveLeft + replacing)
      aboveLeft = above
    }
  }
  return row.at(-1)!
}

/** An option that must be given. */
export function required<Setting>(declared: Option<Setting>): Option<Exclude<Setting, undefined>> {
  return { ...declared, isRequired: true } as Option<Exclude<Setting, undefined>>
}

/**
 * Declares an option. `parse` returns the setting for a value, or REFUSED; `accepts` says in messages what it takes. `otherwise`
 * is the setting of an option that is left out. `code` is the code of the error for a refused value (undefined: INVALID_OPTION).
 * `domain` describes the accepted values as data, of which the JSON Schema of policy files is made.
 */
export function custom<Value, Otherwise = undefined>(
  accepts: string,
  parse: (value: unknown, name: string) => Value | typeof REFUSED,
  otherwise?: Otherwise,
  code?: SluiceErrorCode,
  domain?: Domain,
): Option<Value | Otherwise> {
  return { accepts, parse, otherwise: otherwise as Otherwise, code, domain }
}

/**
 * Declares an option that takes a whole number from `least` to `most`; `otherwise` if it is left out. `code` is that of its
 * error.
 */
export function whole<Otherwise extends number | undefined = undefined>(
  least: number,
  most: number,
  otherwise?: Otherwise,
  code?: SluiceErrorCode,
): Option<number | Otherwise> {
  const isOne = (value: unknown): value is number => Number.isInteger(value) && isWithin(value, least, most)
  const largest = most === 2 ** 52 ? '2^52' : most
  const accepts = `a whole number from ${least} to ${largest}`
  return custom(accepts, accepting(isOne), otherwise, code, { least, most })
}

/** Declares an option that takes a number from `least` to `most`, whole or not; `otherwise` if it is left out. */
export function number(least: number, most: number, otherwise: number): Option<number> {
  const isOne = (value: unknown): value is number => isWithin(value, least, most)
  return custom(`a number from ${least} to ${most}`, accepting(isOne), otherwise)
}

/**
 * Declares an option that takes a duration from `least` to `most`, as a text like '10s' or a number of milliseconds. The setting
 * is in milliseconds; that of `otherwise` if the option is left out.
 */
export function duration<Otherwise extends Duration | undefined = undefined>(
  least: Duration,
  most: Duration,
  otherwise?: Otherwise,
  code: SluiceErrorCode = 'INVALID_DURATION',
): Option<Otherwise extends Duration ? number : number | undefined> {
  const [leastMs, mostMs] = [millisecondsOf(least), millisecondsOf(most)]
  /**
   * The duration `value` in milliseconds. It is REFUSED if it is no duration, is not a whole number of milliseconds, or lies
   * outside of the bounds.
   */
  const parse = (value: unknown): number | typeof REFUSED => {
    const ms = millisecondsOf(value as Duration)
    return Number.isInteger(ms) && isWithin(ms, leastMs, mostMs) ? ms : REFUSED
  }
  const otherwiseMs = otherwise === undefined ? undefined : millisecondsOf(otherwise)
  const domain = { least: leastMs, most: mostMs, isDuration: true } as const
  return custom(durationsFrom(leastMs, mostMs), parse, otherwiseMs as number, code, domain)
}

/** Declares an option that is true or false; `otherwise` if it is left out. */
export function flag(otherwise: boolean): Option<boolean> {
  const isOne = (value: unknown): value is boolean => typeof value === 'boolean'
  return custom('true or false', accepting(isOne), otherwise)
}

/** Declares an option that takes one of these values, texts or other plain ones; `otherwise` if it is left out. */
export function oneOf<const Value, Otherwise extends Value | undefined = undefined>(
  values: readonly Value[],
  otherwise?: Otherwise,
): Option<Value | Otherwise> {
  const shown = values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
  const isOne = (value: unknown): value is Value => values.includes(value as Value)
  const accepts = `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`
  return custom(accepts, accepting(isOne), otherwise, undefined, { values })
}

/** Declares an option that takes a function. `returns` completes the error message: 'that returns microseconds'. */
// oxlint-disable-next-line typescript/no-explicit-any -- a function of any signature
export function func<F extends (...args: any) => unknown>(returns?: string): Option<F | undefined> {
  const isOne = (value: unknown): value is F => typeof value === 'function'
  return custom(returns === undefined ? 'a function' : `a function ${returns}`, accepting(isOne))
}

/**
 * Declares an option that takes a text which `pattern` matches, and `accepts` describes in messages; `otherwise` if it is left
 * out.
 */
export function text<Otherwise extends string | undefined = undefined>(
  accepts: string,
  pattern: RegExp,
  otherwise?: Otherwise,
  code?: SluiceErrorCode,
): Option<string | Otherwise> {
  const isOne = (value: unknown): value is string => typeof value === 'string' && pattern.test(value)
  return custom(accepts, accepting(isOne), otherwise, code, { pattern })
}

/** The values that a name accepts, as a message says it. */
export const PRINTABLE = '1 to 64 characters of printable ASCII'

/** A name as it stands in keys, headers and metrics. */
export const printableName = text(PRINTABLE, /^[\x20-\x7e]{1,64}$/, undefined, 'INVALID_NAME')

/** A clock that is handed in. */
export const clock = func<Clock>('that returns microseconds')

/**
 * Declares an option that is an object of options itself. Messages name an option inside it with its own name in front:
 * 'outer.inner'.
 */
export function nested<D extends Declaration>(declaration: D): Option<Settings<D> | undefined> {
  return custom('an object of options', (value, name) =>
    readOptions(declaration, value as object, { what: name, prefix: `${name}.` }),
  )
}

/**
 * Declares an option that is checked by `check`, which returns the setting for a value, and throws an error of its own for a
 * value that it does not accept.
 */
export function checkedBy<Setting>(
  check: (value: unknown, name: string) => Setting,
): Option<Setting | undefined> {
  return custom('', check)
}

/** An option that is taken as it is and checked where it is used. */
export function unchecked<Value>(): Option<Value> {
  return custom('', (value) => value as Value) as Option<Value>
}

/**
 * Makes the `parse` of an option whose setting is the value itself: it returns the value if `isOne` accepts it, otherwise
 * REFUSED.
 */
function accepting<Value>(
  isOne: (value: unknown) => value is Value,
): (value: unknown) => Value | typeof REFUSED {
  return (value) => (isOne(value) ? value : REFUSED)
}

/** Whether a value is a number from `least` to `most`. */
function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most
}
