import { permitted } from './promise.js'
import { routes } from './scenario.js'
import { type Column, paint, tableHead, tableRow } from './table.js'
import type { Tally } from './tally.js'
import { heading } from './words.js'

export interface Summary {
  readonly text: string
  /** Whether nobody got more than was promised, and every answer was a success or a proper refusal. */
  readonly held: boolean
}

const COLUMNS: readonly Column[] = [
  { title: '', width: 30 },
  { title: 'sent', width: 7, align: 'right' },
  { title: 'allowed', width: 7, align: 'right' },
  { title: 'refused', width: 7, align: 'right' },
  { title: 'permitted', width: 9, align: 'right' },
  { title: '', width: 1 },
]

/** Every caller's answers beside what the policies permit one key in that time. */
export function summarize(tallies: readonly Tally[]): Summary {
  const checks = tallies.map(check)
  const failed = checks.filter(({ held }) => !held)
  const lines = routes.flatMap((route) => [
    heading(route),
    ...checks.filter(({ tally }) => tally.route === route).map(({ line }) => line),
  ])
  const verdict =
    failed.length === 0
      ? paint('green', `✓ Every limit held for all ${checks.length} callers.`)
      : paint('red', `✗ The check failed for ${failed.length} of ${checks.length} callers.`)
  return {
    text: [tableHead(COLUMNS), ...lines, '', EXPLANATION, '', verdict].join('\n'),
    held: failed.length === 0,
  }
}

const EXPLANATION = paint(
  'dim',
  `permitted: the most that the limit lets one caller have in the time from its\nfirst request to its last answer.`,
)

interface Check {
  readonly tally: Tally
  readonly held: boolean
  readonly line: string
}

function check(tally: Tally): Check {
  const { allowed, refused } = tally.total
  const most = permitted(tally.route.policies, tally.spanMs)
  const held = allowed <= most && tally.unexpected === 0
  const mark = held ? paint('green', '✓') : paint('red', '✗')
  const numbers = [tally.sent, allowed, refused, most].map(String)
  const details = [...tally.refusedBy].map(([policies, calls]) => `${calls} refused by ${policies}`)
  if (tally.unexpected > 0) details.push(`neither a success nor a proper refusal: ${tally.unexpected}`)
  const line = tableRow(COLUMNS, [`  ${tally.caller.name}`, ...numbers, mark])
  return { tally, held, line: [line, ...details.map((detail) => paint('dim', `    ${detail}`))].join('\n') }
}
