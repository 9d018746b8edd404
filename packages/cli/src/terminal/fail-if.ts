import { parseDuration } from '@sluice/core'
import type { LimiterReport, ReplayReport } from '../index.js'
import { UsageError } from './options.js'

/**
 * A condition of `--fail-if`, which holds if it does for a limiter in one of the answers.
 * @throws {UsageError} for a text that is no condition.
 */
export function parseFailIf(text: string): {
  readonly text: string
  readonly holds: (report: ReplayReport) => boolean
} {
  const [, subject, operator, value = '', unit] =
    /^\s*(callers|denied|lockout)\s*(>=?)\s*(\d+(?:\.\d+)?(%|[a-z]+)?)\s*$/.exec(text) ?? []
  if (
    subject === undefined ||
    (subject === 'lockout') !== (unit !== undefined && unit !== '%') ||
    (subject === 'callers' && unit)
  )
    throw new UsageError(
      `--fail-if takes 'callers > 5', 'denied > 0.1%', 'denied > 100' or 'lockout > 1h', got '${text}'`,
    )
  const bound = subject === 'lockout' ? parseDuration(value, '--fail-if', { least: 0 }) : parseFloat(value)
  const exceeds = (limiter: LimiterReport): boolean => {
    const { denied, calls, callersHit, longestLockOutMs } = limiter
    const count = unit === '%' ? (denied / Math.max(1, calls)) * 100 : denied
    const found =
      subject === 'callers' ? callersHit : subject === 'lockout' ? (longestLockOutMs ?? Infinity) : count
    return operator === '>' ? found > bound : found >= bound
  }
  return { text, holds: ({ answers }) => answers.some(({ limiters }) => limiters.some(exceeds)) }
}
