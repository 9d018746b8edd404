import { formatDuration } from '@sluice/core/internal'
import type { Basis, Habits, Selector, SuggestReport, WindowReport } from '../index.js'
import { quoted } from './arguments.js'
import { asJson, bold, type TextLine, printable } from './door.js'
import { count, lengthOfTime, type Page, pageLines, percent, table } from './page.js'

/**
 * The report of `suggest` as text: the table of limits, a picture for each window of how many callers need which limit
 * (their peaks), the recommended limits, and a policy to copy with the `command` that confirms it. Pictures stand beside
 * each other as the page's width allows.
 */
export function printSuggest(report: SuggestReport, selector: Selector, command: string, page: Page) {
  const { basis, windows } = report
  const pictures = windows.filter(({ peaks }) => peaks.length > 0).map((window) => picture(window))
  const columns = Math.max(1, Math.floor(page.width / PICTURE))
  const rows = pictures.flatMap((_, i) =>
    i % columns > 0 ? [] : [besideEachOther(pictures.slice(i, i + columns))],
  )
  const advice = windows.flatMap((window) => recommendation(window, basis, page))
  const sections = [limitsTable(report), ...rows, advice, toCopy(report, selector, command)]
  return pageLines(basis, sections, page)
}

/**
 * The table of windows and limits: of each limit the calls and the callers that it would have denied, in numbers and shares, and
 * the longest lock-out. A recommended limit has the mark `> ` and is bold. A row without figures says why there are none.
 */
function limitsTable({ windows, basis }: SuggestReport): TextLine[] {
  const rows = windows.flatMap(({ windowMs, cells, without, recommended }) => {
    const window = formatDuration(windowMs)
    if (cells.length === 0) return [[window, '', without ?? 'no limit is enough']]
    return cells.map(({ limit, figures }, i) => {
      const isBest = limit === recommended?.policy.limit
      const title = [i === 0 ? window : '', `${isBest ? '> ' : ''}${count(limit)}`]
      if (!figures) return [...title, without ?? 'this log is too coarse']
      const { denied, callersHit: hit, longestLockOutMs } = figures
      const shares = [count(denied), percent(denied / basis.calls), count(hit), percent(hit / basis.callers)]
      return [...title, ...shares, denied === 0 ? '-' : lengthOfTime(longestLockOutMs)]
    })
  })
  const lines = table([['window', 'limit', 'denied', '', 'callers', '', 'lock-out'], ...rows])
  return lines.map((line, i) => (i === 0 || line.includes('> ') ? bold(line) : line))
}

/**
 * A picture of how many callers have a peak of each size; a peak is the smallest limit that never denies a caller. Peaks
 * are grouped by doublings (1, 2-3, 4-7 ...), with a bar for each group. Its length grows with the logarithm of the callers, so
 * that one caller beside thousands is seen. The last group has the callers for whom no limit is enough.
 */
function picture({ windowMs, peaks, recommended, cells, without }: WindowReport): string[] {
  const groupOf = (peak: number | null): number => (peak === null ? NO_LIMIT : Math.floor(Math.log2(peak)))
  const groups = new Map<number, number>()
  const first = groupOf(peaks[0]![0])
  for (const [peak, callers] of peaks) {
    const group = groupOf(peak)
    // Groups between the one before and this one have no callers.
    for (let empty = first + groups.size; empty < group && group !== NO_LIMIT; empty++) groups.set(empty, 0)
    groups.set(group, (groups.get(group) ?? 0) + callers)
  }
  const most = Math.log1p(Math.max(...groups.values()))
  const limit = recommended?.policy.limit
  const bars = [...groups].map(([group, callers]) => {
    const range = `${count(2 ** group)}-${count(2 ** (group + 1) - 1)}`
    const name = group === 0 ? '1' : group === NO_LIMIT ? 'no limit' : range
    const bar = '█'.repeat(Math.ceil((BAR * Math.log1p(callers)) / most))
    const mark = limit !== undefined && groupOf(limit) === group ? `  < ${count(limit)}` : ''
    return `${name.padStart(15)} ${bar}${bar && ' '}${count(callers)}${mark}`
  })
  const callers = without === 'interrupted' && cells.length === 0 ? 'some callers' : 'callers'
  return [`${callers} by their peak in ${formatDuration(windowMs)}, bars logarithmic`, ...bars]
}

/** The group of callers for whom no limit is enough, behind that of the largest numbers. */
const NO_LIMIT = 53
const BAR = 34
const PICTURE = 70

/** Joins pictures side by side into the lines of one: each is padded to the same width, and shorter ones with empty lines. */
function besideEachOther(pictures: readonly (readonly string[])[]): TextLine[] {
  const height = Math.max(...pictures.map((lines) => lines.length))
  const cellsOf = (i: number): string[] => pictures.map((lines) => (lines[i] ?? '').padEnd(PICTURE))
  const lines = Array.from({ length: height }, (_, i) => cellsOf(i).join('').trimEnd())
  return [bold(lines.shift()!), ...lines]
}

/**
 * The lines about the limit that is recommended for a window: the share of callers that it never denies, what the next caller above
 * it needs, and the callers that it denies most. `peaks` pairs a peak, the smallest limit that never denies a caller, with the
 * number of its callers; `hit` counts the callers whose peak is above the limit. No lines if no limit is recommended.
 */
function recommendation(window: WindowReport, basis: Basis, page: Page): TextLine[] {
  const { windowMs, recommended, cells, peaks } = window
  if (!recommended) return []
  const { calls: allCalls, callers } = basis
  const { policy, next } = recommended
  const { worst = [] } = cells.find(({ limit }) => limit === policy.limit)?.figures ?? {}
  let hit = 0
  for (const [peak, many] of peaks) if ((peak ?? Infinity) > policy.limit) hit += many
  const title = `${count(policy.limit)} per ${formatDuration(windowMs)}`
  const alone = `leaves ${percent(1 - hit / callers)} of ${count(callers, 'caller')} alone`
  const beyond = worst.flatMap(({ key, calls = 0, denied, habits }) => {
    const figures = `  ${printable(key, page.keys)}: ${percent(calls / allCalls)} of all calls, ${count(denied)} denied`
    const advice = habits && adviceOn(habits)
    return [figures, ...(advice ? [printable(`    ${advice}`, page.width)] : [])]
  })
  const gap = next === null ? 'no caller needs more' : `the next one needs ${count(next)}`
  return [bold(`${title} ${alone}; ${gap}`), ...beyond]
}

/** Advice on a caller whom a limit would deny, by his habits: who he may be, and which option suits him. Undefined without any. */
function adviceOn({ path, share, paths, agents }: Habits): string | undefined {
  if (agents >= 5) return `${agents} user agents: if it is an office, count by a key, --by header:NAME`
  if (share > 0.9 && path !== '')
    return `asks for ${path} alone: for a limit of its own --where ${quoted(`path=${path}`)}`
  return paths >= 16 ? 'one program on many paths; if it is welcome, --where ip!=ADDRESS' : undefined
}

/**
 * The lines to copy: one recommended policy in TypeScript and as a policy file, and the `command` that confirms it. It is the
 * policy of the window whose limit is furthest below what the next caller needs (`next`), in proportion: there the line between
 * usual and unusual callers is clearest.
 */
function toCopy({ windows }: SuggestReport, selector: Selector, command: string): TextLine[] {
  const all = windows.flatMap(({ recommended }) => recommended ?? [])
  const gaps = all.map(({ policy, next }) => (next ?? 0) / policy.limit)
  const best = all[gaps.indexOf(Math.max(...gaps))]
  if (!best) return ['no window of this log gives a limit to recommend']
  const { algorithm, ...options } = best.policy
  const code = JSON.stringify(options)
    .replace(/"(\w+)":/g, ' $1: ')
    .replaceAll('"', "'")
    .replace('}', ' }')
  const limiter = { policies: [best.policy], by: selector.by, where: selector.where?.text }
  const title = bold('the policy, in TypeScript and as policies.json, and what confirms it:')
  const file = asJson({ limiters: { api: limiter } })
    .replace('[{', '[\n  {')
    .replace('}]', '}\n]')
  return [title, `${algorithm}(${code})`, ...file.split('\n'), command]
}
