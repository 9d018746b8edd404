import { formatDuration } from '@sluice/core/internal'
import type { Selector, SuggestReport, WindowReport } from '../index.js'
import { basisLines, count, ledgerLines, length, type Page, percent, printable, table } from './page.js'

/** The report as text. `command` confirms the policy that it ends with. */
export function printSuggest(report: SuggestReport, selector: Selector, command: string, page: Page): string {
  const { basis, windows } = report
  const pictures = windows.filter(({ peaks }) => peaks.length > 0).map((window) => picture(window, page))
  const sections = [
    basisLines(basis, page),
    cells(report, page),
    ...besideEachOther(pictures, Math.max(1, Math.floor(page.width / PICTURE))),
    windows.flatMap((window) => recommendation(window, report, page)),
    toCopy(windows, selector, command, page),
    ledgerLines(basis, page),
  ]
  return sections.map((lines) => lines.join('\n')).join('\n\n')
}

function cells({ windows, basis }: SuggestReport, page: Page): string[] {
  const rows = windows.flatMap(({ windowMs, cells, without, recommended }) => {
    const title = (i: number): string => (i === 0 ? formatDuration(windowMs) : '')
    if (without) return [[title(0), '', without]]
    return cells.map(({ limit, figures }, i) => {
      const first = [title(i), `${limit === recommended?.policy.limit ? '> ' : ''}${count(limit)}`]
      if (!figures) return [...first, 'this log is too coarse']
      const { denied, callersHit, longestLockOutMs } = figures
      const shares = [
        count(denied),
        percent(denied / basis.calls),
        count(callersHit),
        percent(callersHit / basis.callers),
      ]
      return [...first, ...shares, denied === 0 ? '-' : length(longestLockOutMs)]
    })
  })
  const lines = table([['window', 'limit', 'denied', '', 'callers', '', 'lock-out'], ...rows])
  return lines.map((line, i) => (i === 0 || line.includes('> ') ? page.bold(line) : line))
}

/** How many callers have a peak of each size, as bars. They grow with the logarithm: one caller beside thousands is seen. */
function picture({ windowMs, peaks, recommended }: WindowReport, page: Page): string[] {
  const binOf = (peak: number | null): number => (peak === null ? 53 : Math.floor(Math.log2(peak)))
  const bins = new Map<number, number>()
  for (const [peak, callers] of peaks) bins.set(binOf(peak), (bins.get(binOf(peak)) ?? 0) + callers)
  const most = Math.log1p(Math.max(...bins.values()))
  const limit = recommended?.policy.limit
  const bars = [...bins].map(([bin, callers]) => {
    const name = bin === 0 ? '1' : bin === 53 ? 'no limit' : `${count(2 ** bin)}-${count(2 ** (bin + 1) - 1)}`
    const bar = '█'.repeat(Math.max(1, Math.round((BAR * Math.log1p(callers)) / most)))
    const mark = limit !== undefined && binOf(limit) === bin ? `  < ${count(limit)}` : ''
    return `${name.padStart(15)} ${bar} ${count(callers)}${mark}`
  })
  const title = `callers by their peak in ${formatDuration(windowMs)}`
  return [
    page.bold(title) + ' '.repeat(Math.max(0, PICTURE - title.length)),
    ...bars.map((bar) => bar.padEnd(PICTURE)),
  ]
}

const BAR = 34
const PICTURE = 70

/** Pictures in rows of as many as the terminal is wide. */
function besideEachOther(pictures: readonly (readonly string[])[], columns: number): string[][] {
  const rows = pictures
    .filter((_, i) => i % columns === 0)
    .map((_, row) => pictures.slice(row * columns, (row + 1) * columns))
  return rows.map((row) => {
    const heights = Array.from({ length: Math.max(...row.map((lines) => lines.length)) }, (_, i) => i)
    return heights.map((i) =>
      row
        .map((lines) => lines[i] ?? ' '.repeat(PICTURE))
        .join('')
        .trimEnd(),
    )
  })
}

/** The limit of a window, and who is beyond it. */
function recommendation(
  { windowMs, recommended, cells }: WindowReport,
  { basis }: SuggestReport,
  page: Page,
): string[] {
  const figures = cells.find(({ limit }) => limit === recommended?.policy.limit)?.figures
  if (!recommended || !figures) return []
  const title = page.bold(`${count(recommended.policy.limit)} per ${formatDuration(windowMs)}`)
  const alone = `leaves ${percent(1 - figures.callersHit / basis.callers)} of ${count(basis.callers, 'caller')} alone`
  const gap =
    recommended.next === null ? 'nobody needs more' : `the next one needs ${count(recommended.next)}`
  const beyond = figures.worst.map(
    ({ key, calls = 0, denied }) =>
      `  ${printable(key)}: ${percent(calls / basis.calls)} of all calls, ${count(denied)} denied`,
  )
  return [`${title} ${alone}; ${gap}`, ...beyond]
}

/** The policy of the window in which usual callers and the others are furthest apart. */
function toCopy(
  windows: readonly WindowReport[],
  { by, where }: Selector,
  command: string,
  page: Page,
): string[] {
  const gapOf = ({ recommended }: WindowReport): number =>
    recommended ? (recommended.next ?? 0) / recommended.policy.limit : -1
  const [best] = windows.toSorted((one, other) => gapOf(other) - gapOf(one))
  if (!best?.recommended) return ['no window of this log gives a limit to recommend']
  const { algorithm, ...options } = best.recommended.policy
  const limiter = { policies: [best.recommended.policy], by, where: where?.text }
  const code = Object.entries(options).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? `'${value}'` : value}`,
  )
  return [
    page.bold('the policy, in TypeScript and as policies.json, and what confirms it:'),
    `${algorithm}({ ${code.join(', ')} })`,
    JSON.stringify({ limiters: { api: limiter } }),
    command,
  ]
}
