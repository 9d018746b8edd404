import type { Comparison, LimiterReport, ReplayReport, Way } from '../index.js'
import { bold, type TextLine, printable } from './door.js'
import { count, lengthOfTime, type Page, pageLines, percent, shown, table } from './page.js'

/**
 * The report of a replay as text, with the lines of each limiter and of the comparison. Where the log's times are too
 * coarse to say how calls lay within a unit of them, there are three answers, each with a heading.
 */
export function printReplay({ basis, answers }: ReplayReport, page: Page): readonly TextLine[] {
  const isCoarse = answers.length > 1
  const sections = answers.flatMap(({ spread, limiters, against }) => [
    ...(isCoarse ? [[bold(SPREADS[spread])]] : []),
    ...limiters.map((limiter) => limiterLines(limiter, basis.callers, page)),
    ...(against ? [comparisonLines(against, page)] : []),
  ])
  const coarse = 'this log is too coarse for a policy: three answers, by where calls lay in its units'
  return [...(isCoarse ? [bold(coarse), ''] : []), ...pageLines(basis, sections, page)]
}

const SPREADS: Readonly<Record<Way, string>> = {
  evenly: 'evenly within the unit',
  start: 'all at the start of the unit',
  alternating: 'at its end and at its start by turns',
}

/**
 * The lines about one limiter: a title with its denials and how many of the `callers` they hit. If it denied any call, also the
 * longest lock-out, the hour with most denials, the denials of each policy, and a table of the callers with most denials.
 */
function limiterLines(limiter: LimiterReport, callers: number, page: Page): TextLine[] {
  const { calls, denied, callersHit, longestLockOutMs, policies, hours, worst } = limiter
  const share = `${count(denied)} of ${count(calls, 'call')} denied (${percent(denied / Math.max(1, calls))})`
  const title = bold(`${limiter.name}: ${share}, ${count(callersHit)} of ${count(callers, 'caller')}`)
  if (denied === 0) return [title]
  const [hour, most] = Object.entries(hours).reduce((one, other) => (other[1] > one[1] ? other : one))
  const rows = worst.map(({ key, denied: own, first, longestLockOutMs: ms }) => {
    return [`  ${printable(key, page.keys)}`, count(own), shown(first), lengthOfTime(ms)]
  })
  return [
    title,
    `longest lock-out ${lengthOfTime(longestLockOutMs)}; most denials, ${count(most)}, in the hour of ${shown(`${hour}:00`)}`,
    ...Object.entries(policies).map(([policy, number]) => `denied by ${policy}: ${count(number)}`),
    ...table([['  caller', 'denied', 'first', 'lock-out'], ...rows]),
  ]
}

/** The lines about calls that are decided otherwise than before: how many in each direction, and the callers with most of them. */
function comparisonLines({ allowedToDenied, deniedToAllowed, callers }: Comparison, page: Page): string[] {
  const sum = `${count(allowedToDenied, 'call')} allowed before and denied now, ${count(deniedToAllowed)} the other way round`
  const rows = callers.map(({ key, ...changes }) => {
    return [`  ${printable(key, page.keys)}`, count(changes.allowedToDenied), count(changes.deniedToAllowed)]
  })
  return rows.length === 0 ? [sum] : [sum, ...table([['  caller', 'denied now', 'allowed now'], ...rows])]
}
