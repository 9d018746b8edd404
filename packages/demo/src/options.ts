import { parseArgs } from 'node:util'

export interface WholeNumber {
  readonly least: number
  readonly most: number
  readonly default: number
}

/** Options by name: a flag, which is false unless it is given, or a whole number. */
type Known = Readonly<Record<string, 'flag' | WholeNumber>>
type Values<K extends Known> = { readonly [Name in keyof K]: K[Name] extends 'flag' ? boolean : number }

/** Its message is meant for the person at the terminal. */
export class UsageError extends Error {}

/**
 * Reads the arguments of a demo by the options that it knows. Options that are not given have their defaults.
 * @throws {UsageError} for an unknown option or a value outside its bounds.
 */
export function readOptions<const K extends Known>(args: string[], known: K): Values<K> {
  const given = parse(args, known)
  const values = Object.entries(known).map(([name, kind]) => [
    name,
    kind === 'flag' ? given[name] === true : wholeNumber(name, given[name], kind),
  ])
  return Object.fromEntries(values) as Values<K>
}

/**
 * The options that were given, by name: true for a flag, the text of a number.
 * @throws {UsageError} for an unknown option, or one that lacks its value.
 */
function parse(args: string[], known: Known): Readonly<Record<string, string | boolean | undefined>> {
  const types = Object.entries(known).map(
    ([name, kind]) => [name, { type: kind === 'flag' ? 'boolean' : 'string' }] as const,
  )
  try {
    return parseArgs({ args, options: Object.fromEntries(types) }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/**
 * The number that was given for an option, or its default.
 * @throws {UsageError} if it is no whole number within the option's bounds.
 */
function wholeNumber(
  name: string,
  given: string | boolean | undefined,
  { least, most, default: usual }: WholeNumber,
): number {
  const text = String(given ?? usual)
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  throw new UsageError(`--${name} must be a whole number from ${least} to ${most}, got '${text}'`)
}
