import { routes } from './scenario.js'
import { type Column, paint, tableHead, tableRow } from './table.js'
import { type Count, sum, type Tally } from './tally.js'
import { limitInWords, nameOf, policiesInWords } from './words.js'

/** From here on there is room for the whole policy and for numbers beside the bar. */
const WIDE = 110

/** How every route stands: the policy, the last second as a bar, the totals, and what the latest answer said. */
export function screen(title: string, tallies: readonly Tally[], width: number): readonly string[] {
  const now = performance.now()
  const wide = width >= WIDE
  const columns = layout(width, wide)
  const bar = columns.find(({ title }) => title === BAR)?.width ?? 0
  const lines = routes.map((route) => {
    const callers = tallies.filter((tally) => tally.route === route)
    const second = sum(callers.map((tally) => tally.lastSecond(now)))
    const total = sum(callers.map((tally) => tally.total))
    return tableRow(columns, [
      wide ? nameOf(route) : route.path,
      wide ? limitInWords(route) : policiesInWords(route.policies),
      barOf(second, bar),
      ...(wide ? countsOf(second) : []),
      ...countsOf(total),
      callers[0] ? latestOf(callers[0], wide) : '',
    ])
  })
  return ['', title, '', tableHead(columns), ...lines, '', ...LEGEND.map((line) => paint('dim', line))]
}

const BAR = 'last second'

/** The bar takes what the others leave. */
function layout(width: number, wide: boolean): readonly Column[] {
  const names = routes.map((route) => (wide ? nameOf(route) : route.path))
  const limits = routes.map((route) => (wide ? limitInWords(route) : policiesInWords(route.policies)))
  const others: readonly Column[] = [
    { title: 'route', width: longest(names) },
    { title: 'limit', width: longest(limits) },
    { title: BAR, width: 0 },
    ...(wide ? SECOND_COLUMNS : []),
    { title: 'allowed', width: 7, align: 'right' },
    { title: 'refused', width: 7, align: 'right' },
    { title: 'latest answer', width: wide ? 24 : 17 },
  ]
  const taken = others.reduce((sum, column) => sum + column.width + 2, -2)
  const bar = Math.max(BAR.length, width - taken)
  return others.map((column) => (column.title === BAR ? { ...column, width: bar } : column))
}

/** The bar in numbers. */
const SECOND_COLUMNS: readonly Column[] = [
  { title: '+', width: 3, align: 'right' },
  { title: '-', width: 3, align: 'right' },
]

const COSTLY = routes.flatMap(({ path, cost }) => (cost ? [`${path} counts ${cost.of}. `] : []))
const LEGEND = [
  `█ allowed ░ refused. ${COSTLY.join('')}Ctrl-C stops.`,
  'Latest answer: whose it was, and its X-RateLimit-Remaining or its Retry-After.',
]

function longest(texts: readonly string[]): number {
  return Math.max(...texts.map((text) => text.length))
}

/** What was refused is drawn, however little of the bar it is. */
function barOf({ allowed, refused }: Count, width: number): string {
  if (allowed + refused === 0) return paint('dim', '·'.repeat(width))
  const share = (refused / (allowed + refused)) * width
  const cells = Math.min(allowed > 0 ? width - 1 : width, refused > 0 ? Math.max(1, Math.round(share)) : 0)
  return paint('green', '█'.repeat(width - cells)) + paint('red', '░'.repeat(cells))
}

function countsOf({ allowed, refused }: Count): readonly string[] {
  return [paint('green', String(allowed)), paint(refused > 0 ? 'red' : 'dim', String(refused))]
}

/** Of the caller who asks for too much. */
function latestOf({ caller, latest }: Tally, wide: boolean): string {
  if (!latest) return ''
  if (latest.verdict === 'unexpected') return paint('red', `${caller.name} failed`)
  if (latest.verdict === 'allowed') return `${caller.name} ${latest.remaining} left`
  const policy = wide && latest.refusedBy.length > 0 ? ` (${latest.refusedBy.at(-1)})` : ''
  return paint('yellow', `${caller.name} wait ${latest.retryAfter}s${policy}`)
}
