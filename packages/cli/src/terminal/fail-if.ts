import { parseDuration } from '@sluice/core'
import type { LimiterReport, ReplayReport } from '../index.js'
import { usageError } from './arguments.js'

/** The forms of conditions, without white space, and what each measures. */
const FORMS: readonly (readonly [form: RegExp, measure: (limiter: LimiterReport) => number])[] = [
  [/^callers(>=?)(\d+)$/, ({ callersHit }) => callersHit],
  [/^denied(>=?)(\d+)$/, ({ denied }) => denied],
  [/^denied(>=?)(\d+(?:\.\d+)?)%$/, ({ denied, calls }) => (denied / Math.max(1, calls)) * 100],
  [/^lockout(>=?)(\d+[a-z]+)$/, ({ longestLockOutMs }) => longestLockOutMs ?? Infinity],
]

/**
 * Reads a condition of `--fail-if`, such as 'denied > 0.1%' or 'lockout > 1h'. Returns a function that is true for a report in
 * which the measure of some limiter exceeds the bound, in any of the report's answers: a coarse log has three.
 * @throws {UsageError} for a text that is no condition.
 */
export function parseFailIf(text: string): (report: ReplayReport) => boolean {
  for (const [form, measure] of FORMS) {
    const [, operator, value] = form.exec(text.replace(/\s/g, '')) ?? []
    if (value === undefined) continue
    const bound = /[a-z]/.test(value) ? parseDuration(value, '--fail-if', { least: 0 }) : Number(value)
    const exceeds = (found: number): boolean => (operator === '>' ? found > bound : found >= bound)
    return ({ answers }) =>
      answers.some(({ limiters }) => limiters.some((limiter) => exceeds(measure(limiter))))
  }
  const forms = "'callers > 5', 'denied > 0.1%', 'denied > 100' or 'lockout > 1h'"
  throw usageError(`--fail-if takes ${forms}, got '${text}'`)
}
