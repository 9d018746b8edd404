import type { Clock } from './clock.js'
import { type Duration, durationsFrom, millisecondsOf } from './duration.js'
import { expected, PolicyError, type SluiceError, type SluiceErrorCode } from './errors.js'

/*
 * The one language of options. Each object of options has one declaration, which gives every name, its bounds, its default and
 * its messages; `read` checks an object by it and returns the settings. A name that is not declared is an error, because an
 * option that was ignored would change what calls do. An option that is undefined counts as left out.
 */

/** One option: the values that it accepts, and the setting that each becomes. */
export interface Option<Setting> {
  /** The accepted values, as a message names them: 'a whole number from 1 to 10'. */
  readonly accepts: string
  /** The setting of an option that is left out. */
  readonly otherwise?: Setting
  /** Whether it must be given. */
  readonly isRequired?: true
  /** The code of the error for any other value; default INVALID_OPTION. */
  readonly code?: SluiceErrorCode
  /** The setting for a value, or `REFUSED`. A check that explains itself throws. */
  parse(value: unknown, name: string): Setting | typeof REFUSED
}

/** The result of `parse` for a value that is not accepted. */
export const REFUSED = Symbol('refused')

export type Declaration = Readonly<Record<string, Option<unknown>>>

/** A declaration with an entry for each option of an interface, and no further entry. */
export type DeclarationOf<Options> = { readonly [Name in keyof Required<Options>]: Option<unknown> }

export type Settings<D extends Declaration> = {
  readonly [Name in keyof D]: D[Name] extends Option<infer Setting> ? Setting : never
}

/** What errors about an object of options name. */
export interface About {
  /** What takes the options: 'createLimiter', 'penalty'. */
  readonly what: string
  /** Put before the names of options in messages: 'penalty.'. */
  readonly prefix?: string
  /** @default PolicyError */
  readonly error?: ErrorClass
  /** The code of every error about the object, in place of the options' own. */
  readonly code?: SluiceErrorCode
  /**
   * The advice for an option that does not exist.
   * @default the page with the options of other packages
   */
  readonly advice?: string
}

/** PolicyError or InputError, each of which takes some of the codes. */
export type ErrorClass = new (code: never, message: string) => SluiceError

/**
 * The settings that an object of options gives.
 * @throws PolicyError, or `about.error`: INVALID_OPTION, or the option's own code.
 */
export function read<D extends Declaration>(declaration: D, given: object, about: About): Settings<D> {
  checkNames(declaration, given, about)
  const settings: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(declaration)) {
    settings[name] = readOne(option, (given as Record<string, unknown>)[name], name, about)
  }
  return settings as Settings<D>
}

/** The setting that one value gives. Throws as `read`. */
export function readOne<Setting>(
  option: Option<Setting>,
  value: unknown,
  name: string,
  about: About,
): Setting {
  if (value === undefined && !option.isRequired) return option.otherwise as Setting
  const { prefix = '', error = PolicyError, code = option.code ?? 'INVALID_OPTION' } = about
  const setting = option.parse(value, prefix + name)
  if (setting !== REFUSED) return setting
  throw expected(anyCode(error), code, `${prefix}${name} must be ${option.accepts}`, value)
}

/** Checks only that `given` is an object and has no name that is not declared. Throws as `read`. */
export function checkNames(declaration: Declaration, given: object, about: About): void {
  const { what, error = PolicyError, code = 'INVALID_OPTION' } = about
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw expected(anyCode(error), code, `${what} takes an object of options`, given)
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(declaration, name) || (given as Record<string, unknown>)[name] === undefined) continue
    throw new (anyCode(error))(code, unknownOption(name, Object.keys(declaration), about))
  }
}

function anyCode(error: ErrorClass): new (code: SluiceErrorCode, message: string) => SluiceError {
  return error as new (code: SluiceErrorCode, message: string) => SluiceError
}

/** The message about a name that is not declared. */
function unknownOption(name: string, names: readonly string[], { what, advice = ELSEWHERE }: About): string {
  const near = nearestTo(name, names)
  const own = near === undefined ? `its options are ${names.join(', ')}` : `did you mean '${near}'?`
  return `there is no option '${name}' of ${what}: ${own}; ${advice}`
}

const ELSEWHERE = 'docs/migrate/README.md lists those of other packages'

/** The name that differs by the fewest letters, at most a third of them, or that contains the other. */
function nearestTo(name: string, names: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(name.length / 3))
  const [near] = names
    .map((known) => ({ known, distance: distanceOf(name.toLowerCase(), known.toLowerCase()) }))
    .sort((one, other) => one.distance - other.distance)
  return near && near.distance <= most ? near.known : undefined
}

/** Letters to insert, remove or replace (Levenshtein); one for letters in another order, half of one for a part that is missing in front. */
function distanceOf(one: string, other: string): number {
  if (sorted(one) === sorted(other)) return one === other ? 0 : 1
  if (one.endsWith(other) || other.endsWith(one)) return 0.5
  let row = Array.from({ length: other.length + 1 }, (_, i) => i)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const replaced = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[other.length]!
}

function sorted(text: string): string {
  return text.split('').sort().join('')
}

/** An option that must be given. */
export function required<Setting>(option: Option<Setting>): Option<Exclude<Setting, undefined>> {
  return { ...option, isRequired: true } as Option<Exclude<Setting, undefined>>
}

/** A whole number from `least` to `most`. */
export function whole(least: number, most: number, otherwise: number, code?: SluiceErrorCode): Option<number>
export function whole(
  least: number,
  most: number,
  otherwise?: undefined,
  code?: SluiceErrorCode,
): Option<number | undefined>
export function whole(
  least: number,
  most: number,
  otherwise?: number,
  code?: SluiceErrorCode,
): Option<number | undefined> {
  return {
    accepts: `a whole number from ${least} to ${most === 2 ** 52 ? '2^52' : most}`,
    ...(otherwise !== undefined && { otherwise }),
    ...(code && { code }),
    parse: (value) =>
      Number.isInteger(value) && inBounds(value as number, least, most) ? (value as number) : REFUSED,
  }
}

/** A number from `least` to `most`, whole or not. */
export function number(least: number, most: number, otherwise: number): Option<number> {
  return {
    accepts: `a number from ${least} to ${most}`,
    otherwise,
    parse: (value) => (typeof value === 'number' && inBounds(value, least, most) ? value : REFUSED),
  }
}

/** A duration from `least` to `most`. The setting is in milliseconds. */
export function duration(
  least: Duration,
  most: Duration,
  otherwise: Duration,
  code?: SluiceErrorCode,
): Option<number>
export function duration(
  least: Duration,
  most: Duration,
  otherwise?: undefined,
  code?: SluiceErrorCode,
): Option<number | undefined>
export function duration(
  least: Duration,
  most: Duration,
  otherwise?: Duration,
  code: SluiceErrorCode = 'INVALID_DURATION',
): Option<number | undefined> {
  const [leastMs, mostMs] = [millisecondsOf(least), millisecondsOf(most)]
  return {
    accepts: durationsFrom(leastMs, mostMs),
    ...(otherwise !== undefined && { otherwise: millisecondsOf(otherwise) }),
    code,
    parse(value) {
      const ms = millisecondsOf(value as Duration)
      return Number.isInteger(ms) && inBounds(ms, leastMs, mostMs) ? ms : REFUSED
    },
  }
}

export function flag(otherwise: boolean): Option<boolean> {
  return {
    accepts: 'true or false',
    otherwise,
    parse: (value) => (typeof value === 'boolean' ? value : REFUSED),
  }
}

/** A text, or another plain value, of a list. */
export function oneOf<const Value>(values: readonly Value[]): Option<Value | undefined>
export function oneOf<const Value>(values: readonly Value[], otherwise: Value): Option<Value>
export function oneOf<const Value>(values: readonly Value[], otherwise?: Value): Option<Value | undefined> {
  const shown = values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
  return {
    accepts: `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`,
    ...(otherwise !== undefined && { otherwise }),
    parse: (value) => (values.includes(value as Value) ? (value as Value) : REFUSED),
  }
}

/** A function. `returns` completes the message: 'that returns microseconds'. */
// oxlint-disable-next-line typescript/no-explicit-any -- a function of any signature
export function func<F extends (...args: any) => unknown>(returns?: string): Option<F | undefined> {
  return {
    accepts: returns === undefined ? 'a function' : `a function ${returns}`,
    parse: (value) => (typeof value === 'function' ? (value as F) : REFUSED),
  }
}

/** A text that a pattern matches. */
export function text(
  accepts: string,
  pattern: RegExp,
  otherwise?: undefined,
  code?: SluiceErrorCode,
): Option<string | undefined>
export function text(
  accepts: string,
  pattern: RegExp,
  otherwise: string,
  code?: SluiceErrorCode,
): Option<string>
export function text(
  accepts: string,
  pattern: RegExp,
  otherwise?: string,
  code?: SluiceErrorCode,
): Option<string | undefined> {
  return {
    accepts,
    ...(otherwise !== undefined && { otherwise }),
    ...(code && { code }),
    parse: (value) => (typeof value === 'string' && pattern.test(value) ? value : REFUSED),
  }
}

/** A name as it stands in keys, headers and metrics. */
export const printableName = text(
  '1 to 64 characters of printable ASCII',
  /^[\x20-\x7e]{1,64}$/,
  undefined,
  'INVALID_NAME',
)

/** A clock that is handed in. */
export const clock = func<Clock>('that returns microseconds')

/** An object of options inside another, whose names begin with the outer one's in messages. */
export function nested<D extends Declaration>(
  declaration: D,
  about: Omit<About, 'what'> = {},
): Option<Settings<D> | undefined> {
  return {
    accepts: 'an object of options',
    parse: (value, name) => read(declaration, value as object, { what: name, prefix: `${name}.`, ...about }),
  }
}

/** An option that another part checks, which throws for what it does not accept. */
export function checkedBy<Setting>(
  check: (value: unknown, name: string) => Setting,
): Option<Setting | undefined> {
  return { accepts: '', parse: check }
}

/** An option that is checked where it is used. */
export function unchecked<Value>(): Option<Value> {
  return { accepts: '', parse: (value) => value as Value }
}

/** The names of a declaration, for options that are passed on to what checks them. */
export function uncheckedLike<D extends Declaration>(
  declaration: D,
): { readonly [Name in keyof D]: Option<unknown> } {
  const entries = Object.keys(declaration).map((name) => [name, unchecked()])
  return Object.fromEntries(entries) as { [Name in keyof D]: Option<unknown> }
}

function inBounds(value: number, least: number, most: number): boolean {
  return value >= least && value <= most
}
