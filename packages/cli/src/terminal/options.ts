import { parseDuration } from '@sluice/core'
import { ALGORITHM_NAMES, capacityOption, parseBy, parseWhere } from '@sluice/policies'
import { FORMAT_NAMES, type ReadOptions, type Selector, type SuggestOptions } from '../index.js'

/** Thrown for options that cannot be meant. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Options as they were parsed: a value is a text or a number, and a list of these where it was given several times. */
export type Given = Readonly<Record<string, unknown>>

export function textsOf(given: Given, name: string): readonly string[] {
  return [given[name] ?? []].flat().map(String)
}

/**
 * An option's value: the text given for it, the last if given several times, as `parse` reads it. Undefined if none was
 * given.
 */
export function valueOf<T>(given: Given, name: string, parse: (text: string) => T): T | undefined {
  const text = textsOf(given, name).at(-1)
  return text === undefined ? undefined : parse(text)
}

/**
 * Returns the value that was made of an option's text if it is valid.
 * @throws {UsageError} with what was expected, if it is not.
 */
function checked<T>(text: string, value: T, isValid: boolean, expected: string): T {
  if (isValid) return value
  throw new UsageError(`expected ${expected}, got '${text}'`)
}

/**
 * An option's text as a number between two bounds, both included.
 * @throws {UsageError} for any other.
 */
function number(text: string, least: number, most: number): number {
  const value = Number(text)
  return checked(text, value, value >= least && value <= most, `a number from ${least} to ${most}`)
}

function oneOf<T extends string>(text: string, values: readonly T[]): T {
  return checked(text, text as T, values.includes(text as T), `one of ${values.join(', ')}`)
}

/** The selector that `--by` and `--where` make. */
export function selectorOf(given: Given): Selector {
  return { by: valueOf(given, 'by', parseBy), where: valueOf(given, 'where', parseWhere) }
}

/**
 * The options for reading logs, from the command line's flags.
 * @throws {UsageError} for a value that is not valid.
 */
export function readOptionsOf(given: Given, selectors: readonly Selector[]): ReadOptions {
  const fields = textsOf(given, 'field').map((text) =>
    checked(text, text.split(/=(.*)/, 2), /^\w+=./.test(text), 'NAME=PATH'),
  )
  return {
    selectors,
    cost: valueOf(given, 'cost', (text) => checked(text, text, /^field:./.test(text), 'field:PATH')),
    format: valueOf(given, 'format', (text) => oneOf(text, FORMAT_NAMES)),
    fields: Object.fromEntries(fields) as Record<string, string>,
    trustProxy: valueOf(given, 'trustProxy', (text) => number(text, 0, 100)),
    skewMs: valueOf(given, 'skew', (text) => parseDuration(text, '--skew', { least: 0 })),
  }
}

/**
 * The options of `sluice suggest` from the command line's flags, with their defaults.
 * @throws {UsageError} for a value that is not valid.
 */
export function suggestOptionsOf(given: Given): SuggestOptions {
  const windows = (text: string): number[] =>
    text.split(',').map((window) => parseDuration(window, '--windows'))
  const algorithm = valueOf(given, 'algorithm', (text) => oneOf(text, ALGORITHM_NAMES)) ?? 'slidingLog'
  if (given['burst'] !== undefined && capacityOption(algorithm) === undefined)
    throw new UsageError(`--burst is for gcra, tokenBucket and leakyBucket: ${algorithm} has none`)
  const limit = (text: string): number =>
    checked(text, Number(text), /^[1-9]\d{0,9}$/.test(text), 'a limit above 0')
  return {
    windows: valueOf(given, 'windows', windows) ?? windows('1s,10s,1m,10m,1h,1d'),
    limits: valueOf(given, 'limits', (text) => (text === 'auto' ? undefined : text.split(',').map(limit))),
    algorithm,
    burst: valueOf(given, 'burst', (text) => number(text, 1, 2 ** 31)),
    untouched: valueOf(given, 'untouched', (text) => number(text, 0, 100)) ?? 99.9,
  }
}
