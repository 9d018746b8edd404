import { sum } from './tally.js'
import { bar, BAR_LEGEND } from './terminal/bar.js'
import { paint } from './terminal/paint.js'
import type { View } from './terminal/show.js'
import { type Column, COUNT_COLUMNS, countCells, roomFor, tableHead, tableRow } from './terminal/table.js'
import type { Answers } from './answers.js'
import type { Route } from './routes.js'
import { limitInWords, nameOf, policiesInWords } from './words.js'

/** How every route stands: the policy, the last second as a bar, the totals, and what the latest answer said. */
export function view(title: string, routes: readonly Route[], answers: readonly Answers[]): View {
  const rows = routes.map((route): Row => ({ route, callers: answers.filter((own) => own.route === route) }))
  const costly = routes.flatMap(({ path, cost }) => (cost ? [` ${path} counts ${cost.of}.`] : []))
  const columns: readonly Column[] = [
    { title: 'seconds', width: 7, align: 'right' },
    ...routes.map(({ path }): Column => ({ title: path, width: 9, align: 'right' })),
  ]
  return {
    title,
    screen: (width) => screen(rows, width),
    legend: [
      `${BAR_LEGEND}${costly.join('')}`,
      'Latest answer: whose it was, and its X-RateLimit-Remaining or its Retry-After.',
    ],
    lineHead: `Allowed/denied so far:\n\n${tableHead(columns)}`,
    line(seconds) {
      const totals = rows.map(({ callers }) => sum(callers.map(({ tally }) => tally.total)))
      return tableRow(columns, [seconds, ...totals.map(({ allowed, denied }) => `${allowed}/${denied}`)])
    },
  }
}

interface Row {
  readonly route: Route
  readonly callers: readonly Answers[]
}

/** From here on there is room for the whole policy and for numbers beside the bar. */
const WIDE = 110

/** The bar in numbers. */
const SECOND_COLUMNS: readonly Column[] = [
  { title: '+', width: 3, align: 'right' },
  { title: '-', width: 3, align: 'right' },
]

/** The table of routes, fit to `width` columns of the terminal: on a wide one with the whole limit, and numbers beside the bars. */
function screen(rows: readonly Row[], width: number): readonly string[] {
  const wide = width >= WIDE
  const nameIn = (route: Route): string => (wide ? nameOf(route) : route.path)
  const limitIn = (route: Route): string => (wide ? limitInWords(route) : policiesInWords(route.policies))
  const left: readonly Column[] = [
    { title: 'route', width: longest(rows.map(({ route }) => nameIn(route))) },
    { title: 'limit', width: longest(rows.map(({ route }) => limitIn(route))) },
  ]
  const right: readonly Column[] = [
    ...(wide ? SECOND_COLUMNS : []),
    ...COUNT_COLUMNS,
    { title: 'latest answer', width: wide ? 24 : 17 },
  ]
  const room = roomFor([...left, ...right], width, 11, 40)
  const columns = [...left, { title: 'last second', width: room }, ...right]
  const now = performance.now()
  return [
    tableHead(columns),
    ...rows.map(({ route, callers }) => {
      const second = sum(callers.map(({ tally }) => tally.lastSecond(now)))
      const total = sum(callers.map(({ tally }) => tally.total))
      return tableRow(columns, [
        nameIn(route),
        limitIn(route),
        bar(room, second.allowed + second.denied, second),
        ...(wide ? countCells(second) : []),
        ...countCells(total),
        latestOf(callers[0], wide),
      ])
    }),
  ]
}

/** The length of the longest text. */
function longest(texts: readonly string[]): number {
  return Math.max(...texts.map((text) => text.length))
}

/** The latest answer to a caller in a few words: `alice 3 left`, `alice wait 2s`, or that it failed; '' before the first. */
function latestOf(answers: Answers | undefined, wide: boolean): string {
  if (!answers?.latest) return ''
  const { caller, latest } = answers
  if (latest.verdict === 'failed') return paint('red', `${caller.name} failed`)
  if (latest.verdict === 'allowed') return `${caller.name} ${latest.remaining} left`
  const policy = wide && latest.deniedBy.length > 0 ? ` (${latest.deniedBy.at(-1)})` : ''
  return paint('yellow', `${caller.name} wait ${latest.retryAfter}s${policy}`)
}
