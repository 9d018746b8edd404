import type { Span } from './promise.js'
import { BINS, type ColumnResult, DENIED, type PolicyResult, WAITING } from './run.js'

/*
 * Pictures as texts of SVG. They are stretched to the width of their place, so they hold no letters; what they say is written
 * beside them. Colours are those of the page, by class.
 */

const LANE = { height: 44, base: 29 }
const STRIP = { height: 64 }

/** Calls on a line: those that are served stand on it at their turns, those that wait stand there in outline, those denied hang from it. */
export function laneOf(result: ColumnResult, span: Span, bins = BINS): string {
  const served = new Uint32Array(bins)
  const waiting = new Uint32Array(bins)
  const denied = new Uint32Array(bins)
  const scale = bins / (span.to - span.from)
  const count = (row: Uint32Array, at: number): void => {
    const bin = Math.floor((at - span.from) * scale)
    if (bin >= 0 && bin < bins) row[bin]!++
  }
  for (let i = 0; i < result.at.length; i++) {
    const outcome = result.outcome[i]!
    if (outcome === DENIED) count(denied, result.at[i]!)
    else count(served, result.turn[i]!)
    if (outcome === WAITING) count(waiting, result.at[i]!)
  }
  const most = Math.max(1, max(served), max(waiting), max(denied))
  const { height, base } = LANE
  const shapes = [
    `<path class="waiting" d="${bars(waiting, most, base, -(base - 4))}"/>`,
    `<path class="served" d="${bars(served, most, base, -(base - 4))}"/>`,
    `<path class="denied" d="${bars(denied, most, base + 1, height - base - 2)}"/>`,
    `<path class="axis" d="M0 ${base + 0.5}H${bins}"/>`,
  ]
  return svg(bins, height, 'lane', shapes)
}

/** The units at the top of the strip of each policy: those of equal windows are drawn to one scale, to be compared. */
export function scalesOf(columns: readonly ColumnResult[]): ReadonlyMap<number, number> {
  const scales = new Map<number, number>()
  for (const { windowMs, promise, capacity } of columns.flatMap(({ policies }) => policies)) {
    scales.set(windowMs, Math.max(scales.get(windowMs) ?? 1, 1.1 * promise, 1.1 * capacity))
  }
  return scales
}

/** What one key has in use of a policy, and what it has left, under the lines of the promise and the limit. */
export function stripOf(policy: PolicyResult, span: Span, top: number, bins = BINS): string {
  const { height } = STRIP
  const yOf = (units: number): string => short(height - (units / top) * height)
  const step = BINS / bins
  const used = Array.from({ length: bins }, (_, i) => max(policy.used.subarray(i * step, (i + 1) * step)))
  const left = Array.from({ length: bins }, (_, i) => policy.remaining[i * step] ?? 0)
  const shapes = [
    ...(policy.isAligned ? [`<path class="edges" d="${edges(policy.windowMs, span, bins, height)}"/>`] : []),
    `<path class="used" d="M0 ${height}${steps(used, yOf)}V${height}Z"/>`,
    `<path class="used-line" d="M0 ${yOf(used[0] ?? 0)}${steps(used, yOf)}"/>`,
    `<path class="left" d="M0 ${yOf(left[0] ?? 0)}${steps(left, yOf)}"/>`,
    ...(policy.limit === policy.promise ? [] : [`<path class="limit" d="M0 ${yOf(policy.limit)}H${bins}"/>`]),
    `<path class="promise" d="M0 ${yOf(policy.promise)}H${bins}"/>`,
  ]
  return svg(bins, height, 'strip', shapes)
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800, 21_600]
const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...SECONDS.map((each) => 1000 * each)]

/** Round instants that divide a span into 4 to 8 parts, as parts of its width. */
export function ticksOf({ from, to }: Span): readonly { readonly part: number; readonly text: string }[] {
  const size = SIZES.find((each) => (to - from) / each <= 7) ?? 43_200_000
  const ticks = []
  for (let at = Math.ceil(from / size) * size; at <= to; at += size) {
    ticks.push({ part: (at - from) / (to - from), text: timeText(at) })
  }
  return ticks
}

/** A time from the start: 250 ms, 1.5 s, 2:30, 13:00 h. */
export function timeText(ms: number): string {
  if (ms === 0) return '0'
  if (!Number.isFinite(ms)) return 'never'
  if (ms >= 3_600_000) return `${Math.floor(ms / 3_600_000)}:${two((ms % 3_600_000) / 60_000)} h`
  if (ms >= 120_000) return `${Math.floor(ms / 60_000)}:${two((ms % 60_000) / 1000)} min`
  if (ms >= 1000) return `${short(ms / 1000)} s`
  return `${short(ms)} ms`
}

function bars(row: Uint32Array, most: number, base: number, height: number): string {
  let path = ''
  for (const [i, count] of row.entries()) {
    if (count > 0) path += `M${i} ${base}h.8v${short(height * (0.2 + (0.8 * count) / most))}h-.8z`
  }
  return path
}

function steps(values: readonly number[], yOf: (value: number) => string): string {
  let path = ''
  for (const [i, each] of values.entries()) {
    if (each !== values[i - 1]) path += `V${yOf(each)}`
    if (each !== values[i + 1]) path += `H${i + 1}`
  }
  return path
}

/** The starts of windows. More than 60 of them would be a grey area. */
function edges(windowMs: number, { from, to }: Span, bins: number, height: number): string {
  let path = ''
  if ((to - from) / windowMs > 60) return path
  for (let at = Math.ceil(from / windowMs) * windowMs; at < to; at += windowMs) {
    path += `M${short(((at - from) / (to - from)) * bins)} 0V${height}`
  }
  return path
}

function svg(width: number, height: number, name: string, shapes: readonly string[]): string {
  const size = `viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"`
  return `<svg class="${name}" ${size} aria-hidden="true" focusable="false">${shapes.join('')}</svg>`
}

function max(row: ArrayLike<number>): number {
  let most = 0
  for (let i = 0; i < row.length; i++) if (row[i]! > most) most = row[i]!
  return most
}

function short(value: number): string {
  return String(Number(value.toFixed(2)))
}

function two(value: number): string {
  return String(Math.floor(value)).padStart(2, '0')
}
