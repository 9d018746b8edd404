import { memoryShelf, type Shelf, type SuggestReport } from '@sluice/cli'
import { formatDuration } from '@sluice/core/internal'
import { quoted } from '../../packages/cli/src/terminal/arguments.js'
import { formatScenario, MOST_PASTED } from './address.js'

const DAY_MS = 86_400_000
/** Characters of an address that every browser opens. */
const MOST_OPENED = 1_000_000

/**
 * A shelf in memory that is full before the tab is.
 * @throws {RangeError} where calls and callers take more than `most` bytes.
 */
export function boundedShelf(most: number, progress: NonNullable<Shelf['progress']>): Shelf {
  const shelf = memoryShelf()
  let bytes = 0
  const hold = (more: number): void => {
    bytes += more
    if (bytes > most) throw new RangeError('the shelf is full')
  }
  const write = (block: Uint8Array): void => {
    hold(block.length)
    shelf.write(block)
  }
  return { ...shelf, write, progress, hold }
}

/** Why a log was not read, in words for the page: without a line of the log, and with the command that can do what a tab cannot. */
export function problemOf(error: Error, log: string): string {
  const command = `npx @sluice/cli suggest ${quoted(log)}`
  // Of a full shelf, and of the browser where an array, a text or a map can grow no further.
  if (error instanceof RangeError)
    return `this log has more calls, or callers, than a tab can hold: ${command}`
  const text = error.message.replace(/(?:\. The first line is: |, on stdin ).*/s, '')
  return / --\w/.test(text) ? `${text} of the command line: ${command}` : text
}

/** The counts of a report, for the page. */
export function countsOf({ basis, windows }: SuggestReport) {
  const skipped = Object.entries(basis.skipped).map(([reason, { count }]) => [reason, count])
  const shown = windows.map(({ windowMs, without, peaks, recommended }) => {
    const window = { windowMs, window: formatDuration(windowMs), without, peaks }
    return { ...window, recommended: recommended?.policy.limit }
  })
  return { basis: { ...basis, skipped, formats: Object.values(basis.formats) }, windows: shown }
}

/**
 * The calls of one caller around his peak under a limit, as the address of a scenario: with a window before the peak and one after it, or,
 * where these are more than a shared address holds, the peak alone. `times` are in milliseconds and ascend.
 * @throws {Error} where the peak has more calls than an address can carry.
 */
export function scenarioOf(times: readonly number[], windowMs: number, limit: number): string {
  const [first, end] = fullest(times, windowMs)
  const peak = times[first]!
  const from = peak - Math.min(windowMs, DAY_MS - windowMs)
  const to = Math.min(peak + 2 * windowMs, from + DAY_MS)
  const columns = [{ policies: [{ algorithm: 'slidingLog', limit, window: formatDuration(windowMs) }] }]
  const around = times.filter((time) => time >= from && time < to)
  const calls = around.length <= MOST_PASTED ? around : times.slice(first, end)
  // Rounded by their distance from the peak's first call, so that its last one lies within the window as before.
  const [start = 0, ...others] = calls.map((time) => Math.floor(time - peak))
  const list = [0, ...others.map((each) => each - start)].join('\n')
  const text = formatScenario({ settings: { kind: 'list', list }, columns })
  if (text.length <= MOST_OPENED) return text
  throw new Error(`${calls.length} calls are more than the playground opens: choose a shorter window`)
}

/** The window with most calls: the index of its first one, and that behind its last one. */
function fullest(times: readonly number[], windowMs: number): readonly [number, number] {
  let [from, to, first] = [0, 0, 0]
  for (let last = 0; last < times.length; last++) {
    while (times[last]! - times[first]! >= windowMs) first++
    if (last + 1 - first > to - from) [from, to] = [first, last + 1]
  }
  return [from, to]
}
