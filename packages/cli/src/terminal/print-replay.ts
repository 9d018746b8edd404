import type { Comparison, LimiterReport, ReplayReport, Way } from '../index.js'
import {
  basisLines,
  count,
  ledgerLines,
  length,
  type Page,
  percent,
  printable,
  shown,
  table,
} from './page.js'

/** The report as text. */
export function printReplay({ basis, answers }: ReplayReport, page: Page): string {
  const isCoarse = answers.length > 1
  const coarse =
    'this log is too coarse for a policy: three answers, by where calls lay within a unit of its times'
  const sections = answers.flatMap(({ spread, limiters, against }) => [
    ...(isCoarse ? [[page.bold(SPREADS[spread])]] : []),
    ...limiters.map((limiter) => limiterLines(limiter, basis.callers, page)),
    ...(against ? [comparisonLines(against)] : []),
  ])
  const all = [
    ...(isCoarse ? [[page.bold(coarse)]] : []),
    basisLines(basis, page),
    ...sections,
    ledgerLines(basis, page),
  ]
  return all.map((lines) => lines.join('\n')).join('\n\n')
}

const SPREADS: Readonly<Record<Way, string>> = {
  evenly: 'evenly within the unit',
  start: 'all at the start of the unit',
  alternating: 'at its end and at its start by turns',
}

function limiterLines(limiter: LimiterReport, callers: number, page: Page): string[] {
  const { name, calls, denied, callersHit, longestLockOutMs, policies, hours, worst } = limiter
  const share = percent(denied / Math.max(1, calls))
  const sum = `${count(denied)} of ${count(calls, 'call')} denied (${share}), ${count(callersHit)} of ${count(callers, 'caller')}`
  if (denied === 0) return [`${page.bold(name)}: ${sum}`]
  const rows = worst.map((hit) => [
    `  ${printable(hit.key)}`,
    count(hit.denied),
    shown(hit.first),
    length(hit.longestLockOutMs),
  ])
  const [hour, most] = Object.entries(hours).reduce((one, other) => (other[1] > one[1] ? other : one))
  return [
    `${page.bold(name)}: ${sum}`,
    `longest lock-out ${length(longestLockOutMs)}; most denials in the hour of ${shown(`${hour}:00`)}: ${count(most)}`,
    `by policy: ${Object.entries(policies)
      .map(([policy, number]) => `${policy} ${count(number)}`)
      .join(', ')}`,
    ...table([['  caller', 'denied', 'first', 'lock-out'], ...rows]),
  ]
}

function comparisonLines({ allowedToDenied, deniedToAllowed, callers }: Comparison): string[] {
  const rows = callers.map((each) => [
    `  ${printable(each.key)}`,
    count(each.allowedToDenied),
    count(each.deniedToAllowed),
  ])
  const sum = `${count(allowedToDenied, 'call')} allowed before and denied now, ${count(deniedToAllowed)} the other way round`
  return [sum, ...(rows.length > 0 ? table([['  caller', 'denied now', 'allowed now'], ...rows]) : [])]
}
