import { expectedButGot, InputError } from './errors.js'

/**
 * `'250ms' | '10s' | '1m' | '1h' | '1d'`, or a whole number of milliseconds. The type accepts any string, because
 * configuration is text; it is checked when it is used.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}` | (string & {})

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const
const YEAR_MS = 365 * UNITS.d

export interface DurationBounds {
  /**
   * Smallest accepted duration, in milliseconds.
   * @default 1
   */
  readonly least?: number
  /**
   * Largest accepted duration, in milliseconds.
   * @default 365 days
   */
  readonly most?: number
}

/**
 * A duration in milliseconds. `what` names it in the message.
 * @throws {InputError} INVALID_DURATION when it is not whole or out of bounds.
 * @example
 * import { parseDuration } from '@sluice/core'
 * const ms = parseDuration('90s', 'timeout') // 90000
 */
export function parseDuration(value: Duration, what: string, bounds: DurationBounds = {}): number {
  const { least = 1, most = YEAR_MS } = bounds
  const ms = millisecondsOf(value)
  if (Number.isInteger(ms) && ms >= least && ms <= most) return ms
  throw expectedButGot(
    InputError,
    'INVALID_DURATION',
    `${what} must be ${durationsFrom(least, most)}`,
    value,
    meantBy(value, true),
  )
}

/** The accepted durations, from `leastMs` to `mostMs`, as error messages name them. */
export function durationsFrom(leastMs: number, mostMs: number): string {
  const form = `a whole number of milliseconds or a text like '250ms', '10s', '1m', '1h', '1d'`
  return `${form} from ${leastMs} ms to ${formatDuration(mostMs)}`
}

/** The form of a duration that is a text. */
export const DURATION = /^(\d{1,15})(ms|s|m|h|d)$/

/** The milliseconds of a duration: of a text like '10s', or a number as it is; NaN for a text that is no duration. */
export function millisecondsOf(value: Duration): number {
  if (typeof value !== 'string') return value
  const match = DURATION.exec(value)
  return match ? Number(match[1]) * UNITS[match[2] as keyof typeof UNITS] : NaN
}

/**
 * Returns the end of an error message about `value`, a text that is no valid number or duration: what to write instead. Empty if
 * that cannot be guessed.
 */
export function meantBy(value: unknown, isDuration = false): string {
  if (typeof value !== 'string') return ''
  if (value.trim() !== '' && Number.isFinite(Number(value))) return `; write ${Number(value)}`
  const [, count, unit = ''] = WORDED_DURATION.exec(value) ?? []
  const ms = Number(count) * WORDED_UNITS[unit.toLowerCase()]!
  return isDuration && ms > 0 && !DURATION.test(value) ? `; write '${formatDuration(ms)}'` : ''
}

/** A number and a unit as people write it, such as '5 minutes', '1.5h', '2 weeks', '10 millis'; not months, which differ in length. */
const WORDED_DURATION = /^\s*([\d.]+)\s*(?!mo)(ms|mil|[smhdw])[a-z]*\s*$/i
const WORDED_UNITS: Record<string, number> = { mil: 1, w: 7 * UNITS.d, ...UNITS }

/** The shortest text for a number of milliseconds: 60000 is '1m', 90000 is '90s'. */
export function formatDuration(ms: number): string {
  for (const [unit, size] of Object.entries(UNITS)) {
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}
