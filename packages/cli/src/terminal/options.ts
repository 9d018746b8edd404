import '@sluice/calendar' // a Temporal for runtimes that have none
import { parseDuration } from '@sluice/core'
import { algorithms } from '@sluice/core/store'
import { type AlgorithmName, capacityOption, parseBy, parseWhere } from '@sluice/policies'
import { FORMAT_NAMES, type ReadOptions, type Selector, type SuggestOptions } from '../index.js'
import { FIELD_NAMES } from '../logs/json-format.js'
import { type Given, optionTexts, usageError } from './arguments.js'

/** The value of the option `name`: the text given for it, as `parse` reads it. Undefined if none was given. */
export function optionOf<T>(given: Given, name: string, parse: (text: string) => T): T | undefined {
  const [text] = optionTexts(given, name)
  return text === undefined ? undefined : parse(text)
}

/**
 * Returns `value`, which was made of an option's `text`, if it `isValid`.
 * @throws {UsageError} otherwise, with what was `expected` and the text that came.
 */
function checked<T>(text: string, value: T, isValid: boolean, expected: string): T {
  if (isValid) return value
  throw usageError(`expected ${expected}, got '${text}'`)
}

/** An option's text as a whole number from `least` to `most`, both included. @throws {UsageError} for any other. */
export function wholeNumber(text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN
  return checked(text, value, value >= least && value <= most, `a whole number from ${least} to ${most}`)
}

/** An option's text as a percentage from 0 to 100, which may have a fraction. @throws {UsageError} for any other. */
function percentage(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN
  return checked(text, value, value >= 0 && value <= 100, 'a number from 0 to 100')
}

/**
 * An option's text, which must be one of the values.
 * @throws {UsageError} for any other.
 */
function oneOf<T extends string>(text: string, values: readonly T[]): T {
  return checked(text, text as T, values.includes(text as T), `one of ${values.join(', ')}`)
}

/**
 * Whose calls are counted together (--by), and which calls are counted (--where). Undefined parts have the default: all
 * calls, by address.
 */
export function selectorOf(given: Given): Selector {
  return { by: optionOf(given, 'by', parseBy), where: optionOf(given, 'where', parseWhere) }
}

/**
 * The options for reading logs, from the command line's flags. `selectors` say whose calls are counted, and `signal` ends
 * the reading. `--field` gives the place of a part in lines of JSON, once for each part.
 * @throws {UsageError} for a value that is not valid.
 */
export function readOptionsOf(
  given: Given,
  selectors: readonly Selector[],
  signal: AbortSignal,
): ReadOptions {
  const fields: Record<string, string> = {}
  for (const text of optionTexts(given, 'field')) {
    const [, name = '', path = ''] = /^(\w+)=(.+)$/.exec(text) ?? []
    const isNew = FIELD_NAMES.includes(name) && !(name in fields)
    fields[name] = checked(text, path, isNew, `NAME=PATH, once for each of ${FIELD_NAMES.join(', ')}`)
  }
  return {
    selectors,
    signal,
    cost: optionOf(given, 'cost', (text) => checked(text, text, /^field:./.test(text), 'field:PATH')),
    format: optionOf(given, 'format', (text) => oneOf(text, FORMAT_NAMES)),
    fields,
    callers: optionOf(given, 'callers', (text) => oneOf(text, ['addresses', 'names'])),
    trustProxy: optionOf(given, 'trustProxy', (text) => wholeNumber(text, 0, 100)),
    skewMs: optionOf(given, 'skew', (text) => parseDuration(text, '--skew', { least: 0 })),
  }
}

/** How many percent of the lines that look like calls may be unread without a warning (--max-unread). */
export const maxUnreadOf = (given: Given): number => optionOf(given, 'maxUnread', percentage) ?? 1

/**
 * The options of `sluice suggest` from the command line's flags, with their defaults. `limits` is undefined for 'auto':
 * limits are then chosen by the peaks of the callers.
 * @throws {UsageError} for a value that is not valid.
 */
export function suggestOptionsOf(given: Given): SuggestOptions {
  const names = Object.keys(algorithms) as readonly AlgorithmName[]
  const algorithm = optionOf(given, 'algorithm', (text) => oneOf(text, names)) ?? 'slidingLog'
  const usual = 'every' in algorithms[algorithm].options ? '1d,7d,30d' : '1s,10s,1m,10m,1h,1d'
  const windows = optionOf(given, 'windows', String) ?? usual
  if (given['burst'] !== undefined && capacityOption(algorithm) === undefined)
    throw usageError(
      `--burst is for ${names.filter((name) => capacityOption(name)).join(', ')}: ${algorithm} has none`,
    )
  const limitsIn = (text: string) => text.split(',').map((limit) => wholeNumber(limit, 1, 1e10))
  return {
    windows: [...new Set(windows.split(','))].map((window) => parseDuration(window, '--windows')),
    limits: optionOf(given, 'limits', (text) => (text === 'auto' ? undefined : limitsIn(text))),
    algorithm,
    burst: optionOf(given, 'burst', (text) => wholeNumber(text, 1, 2 ** 31)),
    untouched: optionOf(given, 'untouched', percentage) ?? 99.9,
  }
}
