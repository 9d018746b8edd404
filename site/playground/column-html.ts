import type { Span } from './promise.js'
import { BINS, type ColumnResult, type PolicyResult } from './run.js'
import { laneOf, scalesOf, stripOf, ticksOf, timeText } from './draw.js'

/** Columns as they are drawn in the playground and on pages: their calls, a strip for each policy, and the time below them. */
export function columnsHtml(columns: readonly ColumnResult[], span: Span, bins = BINS): readonly string[] {
  const scales = scalesOf(columns)
  const ticks = ticksOf(span).map(({ part, text }) => `<span style="left:${percent(part)}">${text}</span>`)
  return columns.map((column) => {
    const strips = column.policies.map((policy) =>
      stripHtml(policy, span, scales.get(policy.windowMs)!, bins),
    )
    return `<div class="lane-box">${laneOf(column, span, bins)}</div>${strips.join('')}<div class="ticks">${ticks.join('')}</div>`
  })
}

function stripHtml(policy: PolicyResult, span: Span, top: number, bins: number): string {
  const { name, windowMs, most, promise, limit } = policy
  const share = promise > 0 ? Math.floor((100 * most) / promise) : 0
  const near = `most in any ${timeText(windowMs)}: <b>${units(most)}</b> of ${units(promise)} promised, ${share} %`
  const label = (what: string, count: number): string =>
    `<span class="line-label" style="top:${percent(1 - count / top)}">${what} ${units(count)}</span>`
  const labels = label('promise', promise) + (limit > promise * 0.8 ? '' : label('limit', limit))
  const head = `<div class="strip-head"><b>${escaped(name)}</b> <span>${near}</span></div>`
  return `<div class="strip-box">${head}<div class="plot">${stripOf(policy, span, top, bins)}${labels}</div></div>`
}

function percent(part: number): string {
  return `${(100 * part).toFixed(2)}%`
}

/** The totals of a column in one line. */
export function totalsText({ totals }: ColumnResult): string {
  const { served, denied, waited, longestLockOut } = totals
  const waits = waited > 0 ? `, ${units(waited)} after a wait` : ''
  const lockOut = denied > 0 ? `, longest lock-out ${timeText(longestLockOut)}` : ''
  return `${units(served)} served${waits}, ${units(denied)} denied${lockOut}`
}

export function units(count: number): string {
  return String(Math.round(count * 100) / 100).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)
}
