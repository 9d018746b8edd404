import { BINS, type ColumnResult, type PolicyResult } from './run.js'
import { laneOf, promiseHeight, stripOf, ticksOf, timeText } from './draw.js'

/** A column as it is drawn in the playground and on pages: its calls, a strip for each policy, and the time below them. */
export function columnHtml(result: ColumnResult, span: { from: number; to: number }, bins = BINS): string {
  const strips = result.policies.map((policy) => stripHtml(policy, span, bins)).join('')
  const ticks = ticksOf(span).map(
    ({ part, text }) => `<span style="left:${(100 * part).toFixed(2)}%">${text}</span>`,
  )
  return `<div class="lane-box">${laneOf(result, span, bins)}</div>${strips}<div class="ticks">${ticks.join('')}</div>`
}

function stripHtml(policy: PolicyResult, span: { from: number; to: number }, bins: number): string {
  const { name, windowMs, most, promise } = policy
  const share = promise > 0 ? Math.floor((100 * most) / promise) : 0
  const near = `most in any ${timeText(windowMs)}: <b>${units(most)}</b> of ${units(promise)} promised, ${share} %`
  const label = `<span class="promise-label" style="top:${(100 * promiseHeight(policy)).toFixed(1)}%">${units(promise)}</span>`
  const head = `<div class="strip-head"><b>${escaped(name)}</b> <span>${near}</span></div>`
  return `<div class="strip-box">${head}<div class="plot">${stripOf(policy, span, bins)}${label}</div></div>`
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
