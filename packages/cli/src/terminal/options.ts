import { parseDuration } from '@sluice/core'
import { ALGORITHM_NAMES, type AlgorithmName, parseBy, parseWhere } from '@sluice/policies'
import { FORMAT_NAMES, type ReadOptions, type Selector, type SuggestOptions } from '../index.js'

/** Thrown for options that cannot be meant. */
export class UsageError extends Error {}

/** Options as they were parsed: each value is a list of texts. */
export type Given = Readonly<Record<string, unknown>>

export function textsOf(given: Given, name: string): readonly string[] {
  return (given[name] as string[] | undefined) ?? []
}

/** What `parse` makes of the text that was given last; undefined if none was. */
export function valueOf<T>(given: Given, name: string, parse: (text: string) => T): T | undefined {
  const text = textsOf(given, name).at(-1)
  return text === undefined ? undefined : parse(text)
}

/** A parser that takes texts which pass a check. */
function checked<T>(
  what: string,
  parse: (text: string) => T,
  isValid: (value: T) => boolean,
): (text: string) => T {
  return (text) => {
    const value = parse(text)
    if (isValid(value)) return value
    throw new UsageError(`expected ${what}, got '${text}'`)
  }
}

function number(name: string, least: number, most: number): (text: string) => number {
  return checked(`--${name} from ${least} to ${most}`, Number, (value) => value >= least && value <= most)
}

function oneOf<T extends string>(name: string, values: readonly T[]): (text: string) => T {
  return checked(
    `--${name} as one of ${values.join(', ')}`,
    (text) => text as T,
    (value) => values.includes(value),
  )
}

/** The selector that `--by` and `--where` make. */
export function selectorOf(given: Given): Selector {
  return { by: valueOf(given, 'by', parseBy), where: valueOf(given, 'where', parseWhere) }
}

/** How logs are read. */
export function readOptionsOf(
  given: Given,
  selectors: readonly Selector[],
  signal: AbortSignal,
): ReadOptions {
  const field = checked(
    '--field NAME=PATH',
    (text) => text.split(/=(.*)/, 2),
    ([name, path]) => Boolean(name && path),
  )
  return {
    selectors,
    cost: valueOf(
      given,
      'cost',
      checked('--cost field:PATH', String, (text) => /^field:./.test(text)),
    ),
    format: valueOf(given, 'format', oneOf('format', FORMAT_NAMES)),
    fields: Object.fromEntries(textsOf(given, 'field').map(field)) as Record<string, string>,
    trustProxy: valueOf(given, 'trustProxy', number('trust-proxy', 0, 100)),
    skewMs: valueOf(given, 'skew', (text) => parseDuration(text, '--skew', { least: 0 })),
    signal,
  }
}

/** What `suggest` looks for. */
export function suggestOptionsOf(given: Given): SuggestOptions {
  const units = checked(
    '--limits as whole numbers with commas between',
    (text) => text.split(',').map(Number),
    (limits) => limits.every((limit) => Number.isInteger(limit) && limit > 0),
  )
  const windows = (text: string): number[] =>
    text.split(',').map((window) => parseDuration(window, '--windows'))
  return {
    windows: valueOf(given, 'windows', windows) ?? windows('1s,10s,1m,10m,1h,1d'),
    limits: valueOf(given, 'limits', (text) => (text === 'auto' ? undefined : units(text))),
    algorithm:
      valueOf(given, 'algorithm', oneOf<AlgorithmName>('algorithm', ALGORITHM_NAMES)) ?? 'slidingLog',
    burst: valueOf(given, 'burst', number('burst', 1, 2 ** 31)),
    untouched: valueOf(given, 'untouched', number('untouched', 0, 100)) ?? 99.9,
  }
}
