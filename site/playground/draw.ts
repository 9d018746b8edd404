import type { Span } from './spans.js'
import { BINS, type ColumnResult, type PolicyResult } from './run.js'

/*
 * Pictures as texts of SVG. They are stretched to the width of their place, so they hold no letters; what they say is written
 * beside them. Colours are those of the page, by class.
 */

const STRIP_HEIGHT = 64

/** Columns as they are drawn in the playground and on pages: their calls, a strip for each policy, and the time below them. */
export function columnsHtml(columns: readonly ColumnResult[], span: Span, bins = BINS): readonly string[] {
  // Policies of equal windows are drawn to one scale, to be compared.
  const tops = new Map<number, number>()
  for (const { windowMs, promise } of columns.flatMap(({ policies }) => policies))
    tops.set(windowMs, Math.max(tops.get(windowMs) ?? 1, 1.1 * promise))
  return columns.map((column) => {
    const strips = column.policies.map((policy) => stripHtml(policy, span, tops.get(policy.windowMs)!, bins))
    return `<div class="lane-box">${laneOf(column, span, bins)}</div>${strips.join('')}<div class="ticks">${ticksOf(span)}</div>`
  })
}

/** The totals of a column in one line. */
export function totalsText({ totals, isCutOff }: ColumnResult): string {
  const { served, denied, waited, longestLockOut } = totals
  const waits = waited > 0 ? `, ${units(waited)} after a wait` : ''
  const lockOut = denied > 0 ? `, longest lock-out ${timeText(longestLockOut)}` : ''
  return `${units(served)} served${waits}, ${units(denied)} denied${lockOut}${isCutOff ? '; more calls than are decided' : ''}`
}

/** A time: 250 ms, 1.234 s, 2:30 min, 13:00 h, 31 days. Two minutes and more are rounded up, as a wait must not be read as too short. */
export function timeText(ms: number): string {
  if (ms === 0) return '0'
  if (!Number.isFinite(ms)) return 'never'
  if (ms < 120_000) return ms < 1000 ? `${short(ms)} ms` : `${Number((ms / 1000).toFixed(3))} s`
  if (ms >= 172_800_000) return `${Math.ceil(ms / 8_640_000) / 10} days`
  const [size, unit] = ms < 3_600_000 ? [60_000, 'min'] : [3_600_000, 'h']
  const sixtieths = Math.ceil((60 * ms) / size)
  return `${Math.floor(sixtieths / 60)}:${String(sixtieths % 60).padStart(2, '0')} ${unit}`
}

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** Calls on a line: those that are served stand on it at their turns, those that wait stand there in outline, those denied hang from it. */
function laneOf(result: ColumnResult, span: Span, bins: number): string {
  const scale = bins / (span.to - span.from)
  const [served, waiting, denied] = [new Uint32Array(bins), new Uint32Array(bins), new Uint32Array(bins)]
  result.at.forEach((at, i) => {
    const came = Math.floor((at - span.from) * scale) // numbers that are none of the bins count nowhere
    const turn = result.turn[i]!
    if (Number.isNaN(turn)) denied[came]!++
    else served[Math.floor((turn - span.from) * scale)]!++
    if (turn > at) waiting[came]!++
  })
  const most = Math.max(1, ...served, ...waiting, ...denied)
  const [height, base] = [44, 29]
  return svg(bins, height, 'lane', [
    `<path class="waiting" d="${bars(waiting, most, base, -(base - 4))}"/>`,
    `<path class="served" d="${bars(served, most, base, -(base - 4))}"/>`,
    `<path class="denied" d="${bars(denied, most, base + 1, height - base - 2)}"/>`,
    `<path class="axis" d="M0 ${base + 0.5}H${bins}"/>`,
  ])
}

/** A strip with its policy's name, what it let through beside its limit, and names on the lines. */
function stripHtml(policy: PolicyResult, span: Span, top: number, bins: number): string {
  const { name, windowMs, most, promise, limit } = policy
  const isOver = most > limit
  const beside = isOver
    ? `${units(most / limit)} times the limit of ${units(limit)}`
    : `of ${units(limit)} allowed`
  const near = `most in any ${timeText(windowMs)}: <b${isOver ? ' class="over"' : ''}>${units(most)}</b>${isOver ? ',' : ''} ${beside}`
  const label = (what: string, count: number): string =>
    `<span class="line-label of-${what}" style="top:${percent(1 - count / top)}">${what} ${units(count)}</span>`
  const ofLimit = limit === promise || limit <= promise * 0.8 ? label('limit', limit) : ''
  const labels = (limit === promise ? '' : label('promise', promise)) + ofLimit
  const head = `<div class="strip-head"><b>${escaped(name)}</b> <span>${near}</span></div>`
  return `<div class="strip-box">${head}<div class="plot">${stripOf(policy, span, top, bins)}${labels}</div></div>`
}

/** The units that one key has in use of a policy, and those it has left, under the lines of the promise and the limit. */
function stripOf(policy: PolicyResult, span: Span, top: number, bins: number): string {
  const height = STRIP_HEIGHT
  const yOf = (count: number): string => short(height - (count / top) * height)
  const line = (name: string, count: number): string => `<path class="${name}" d="M0 ${yOf(count)}H${bins}"/>`
  const step = BINS / bins
  const firsts = Array.from({ length: bins }, (_, i) => i * step)
  const most = firsts.map((first) => Math.max(...policy.used.subarray(first, first + step)))
  const used = steps(most.map(yOf))
  const over = steps(most.map((count) => yOf(Math.max(count, policy.limit))))
  const isOver = most.some((count) => count > policy.limit)
  const left = steps(firsts.map((first) => yOf(policy.remaining[first] ?? 0)))
  return svg(bins, height, 'strip', [
    policy.isAligned ? `<path class="edges" d="${edges(policy.windowMs, span, bins)}"/>` : '',
    `<path class="used" d="M0 ${height}V${used}V${height}Z"/>`,
    isOver ? `<path class="over" d="M0 ${yOf(policy.limit)}V${over}V${yOf(policy.limit)}Z"/>` : '',
    `<path class="used-line" d="M0 ${used}"/>`,
    `<path class="left" d="M0 ${left}"/>`,
    policy.limit === policy.promise ? '' : line('limit', policy.limit),
    line('promise', policy.promise),
  ])
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800, 21_600]
const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...SECONDS.map((each) => 1000 * each)]

/** Round instants that divide a span into 4 to 8 parts. */
function ticksOf({ from, to }: Span): string {
  const size = SIZES.find((each) => (to - from) / each <= 7) ?? 43_200_000
  let ticks = ''
  for (let at = Math.ceil(from / size) * size; at <= to; at += size)
    ticks += `<span style="left:${percent((at - from) / (to - from))}">${timeText(at)}</span>`
  return ticks
}

function bars(row: Uint32Array, most: number, base: number, height: number): string {
  let path = ''
  for (const [i, count] of row.entries())
    if (count > 0) path += `M${i} ${base}h.8v${short(height * (0.2 + (0.8 * count) / most))}h-.8z`
  return path
}

/** From the first height on, a step at each change. */
function steps(heights: readonly string[]): string {
  const changes = heights.map((each, i) => (each === heights[i - 1] ? '' : `H${i}V${each}`))
  return `${heights[0]}${changes.join('')}H${heights.length}`
}

/** The starts of windows. More than 60 of them would be a grey area. */
function edges(windowMs: number, { from, to }: Span, bins: number): string {
  let path = ''
  const end = (to - from) / windowMs > 60 ? from : to
  for (let at = Math.ceil(from / windowMs) * windowMs; at < end; at += windowMs)
    path += `M${short(((at - from) / (to - from)) * bins)} 0V${STRIP_HEIGHT}`
  return path
}

function svg(width: number, height: number, name: string, shapes: readonly string[]): string {
  const size = `viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"`
  return `<svg class="${name}" ${size} aria-hidden="true" focusable="false">${shapes.join('')}</svg>`
}

function short(value: number): string {
  return String(Number(value.toFixed(2)))
}

function percent(part: number): string {
  return `${(100 * part).toFixed(2)}%`
}

function units(count: number): string {
  return count.toLocaleString('en', { maximumFractionDigits: 2 })
}
