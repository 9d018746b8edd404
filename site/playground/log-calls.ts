import type { Shelf } from '@sluice/cli'
import { formatScenario, MOST_PASTED, tooLong } from './address.js'

const DAY_MS = 86_400_000

/**
 * A shelf in memory that is full before the tab is.
 * @throws {Error} with the command that takes a log of any length, where more than `most` bytes are written.
 */
export function boundedShelf(most: number, log: string, progress: NonNullable<Shelf['progress']>): Shelf {
  const blocks: Uint8Array[] = []
  let bytes = 0
  return {
    write(block) {
      bytes += block.length
      if (bytes > most)
        throw new Error(`this log has more calls than a tab can hold: npx @sluice/cli suggest ${log}`)
      blocks.push(block.slice())
    },
    read: (index, into) => into.set(blocks[index]!),
    progress,
  }
}

/**
 * The calls of one caller around his peak under a limit, as the address of a scenario. `times` are in milliseconds and ascend; those that an
 * address has no room for are left out.
 */
export function scenarioOf(times: readonly number[], windowMs: number, limit: number): string {
  const first = fullest(times, windowMs)
  const columns = [{ policies: [{ algorithm: 'slidingLog', limit, window: `${windowMs}ms` }] }]
  for (let most = MOST_PASTED; ; most = Math.floor(most / 2)) {
    const from = Math.max(0, first - Math.floor(most / 8))
    const shown = times.slice(from, from + most).filter((time) => time - times[from]! < DAY_MS)
    const list = shown.map((time) => Math.floor(time - times[from]!)).join('\n')
    const scenario = { settings: { kind: 'list', list }, columns }
    const text = formatScenario(scenario)
    if (most <= 1 || !tooLong(scenario, text)) return text
  }
}

/** The index of the first call of the window with most calls. */
function fullest(times: readonly number[], windowMs: number): number {
  let [best, most, first] = [0, 0, 0]
  for (let last = 0; last < times.length; last++) {
    while (times[last]! - times[first]! >= windowMs) first++
    if (last - first + 1 > most) [best, most] = [first, last - first + 1]
  }
  return best
}
