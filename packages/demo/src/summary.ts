import { mark, paint, verdict } from './terminal/paint.js'
import { type Column, COUNT_COLUMNS, tableHead, tableRow } from './terminal/table.js'
import type { Answers } from './answers.js'
import type { Route } from './routes.js'
import { heading } from './words.js'

export interface Summary {
  readonly text: string
  /** Whether no caller got more than was promised, and every answer was a success or a proper denial. */
  readonly held: boolean
}

const COLUMNS: readonly Column[] = [
  { title: '', width: 18 },
  { title: 'sent', width: 7, align: 'right' },
  ...COUNT_COLUMNS,
  { title: 'permitted', width: 9, align: 'right' },
  { title: '', width: 1 },
]

/**
 * The table of every caller's answers beside the most that the policies permit one key in that time, and whether all kept to
 * it.
 */
export function summarize(routes: readonly Route[], answers: readonly Answers[]): Summary {
  const checks = answers.map(check)
  const failed = checks.filter(({ held }) => !held)
  const lines = routes.flatMap((route) => [
    heading(route),
    ...checks.filter(({ of }) => of.route === route).map(({ line }) => line),
  ])
  const held = failed.length === 0
  const last = held
    ? `Every limit held for all ${checks.length} callers.`
    : `The check failed for ${failed.length} of ${checks.length} callers.`
  return { text: [tableHead(COLUMNS), ...lines, '', EXPLANATION, '', verdict(held, last)].join('\n'), held }
}

const EXPLANATION = paint(
  'dim',
  `permitted: the most that the limit lets one caller have in the time from its\nfirst request to its last answer.`,
)

interface Check {
  readonly of: Answers
  readonly held: boolean
  readonly line: string
}

/** Compares the units that one caller got with the most that the policies permit in that time, and makes the caller's line of the table. */
function check(answers: Answers): Check {
  const { route, caller, tally } = answers
  const { allowed, denied } = tally.total
  // Both ends of the time count.
  const span = Math.ceil(tally.spanMs * 1000) + 1
  const most = Math.min(...route.policies.map((policy) => policy.algorithm.bounds.most(policy, span)))
  const held = allowed <= most && tally.failed === 0
  const sent = allowed + denied + tally.failed * (route.cost?.units ?? 1)
  const details = [...answers.deniedBy].map(([policies, calls]) => `${calls} denied by ${policies}`)
  if (tally.failed > 0) details.push(`neither a success nor a proper denial: ${tally.failed}`)
  const numbers = [sent, allowed, denied, most].map(String)
  const line = tableRow(COLUMNS, [`  ${caller.name}`, ...numbers, mark(held)])
  return {
    of: answers,
    held,
    line: [line, ...details.map((detail) => paint('dim', `    ${detail}`))].join('\n'),
  }
}
