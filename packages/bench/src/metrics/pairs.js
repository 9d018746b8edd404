import { cpuUsage } from 'node:process'

/** Pairs of blocks. Of their differences the smallest and the largest tenth are left out: collections of the old generation. */
const PAIRS = 100
const LEFT_OUT = 0.1

/**
 * CPU of a call without and of one more with something, in nanoseconds. Both are measured in one process and in short blocks
 * that take turns, as processes differ from each other by more than what is measured.
 * @param {number} calls Of a block.
 * @param {(calls: number) => unknown} off Makes so many calls.
 * @param {(calls: number) => unknown} on
 * @param {() => unknown} prepare Called before each block, and not measured.
 * @returns {Promise<{ off: number, more: number }>}
 */
export async function pairs(calls, off, on, prepare = () => {}) {
  const cpuOf = async (/** @type {typeof off} */ run) => {
    prepare()
    const before = cpuUsage()
    await run(calls)
    const { user, system } = cpuUsage(before)
    return ((user + system) * 1000) / calls
  }
  /** @type {{ off: number, more: number }[]} */
  const measured = []
  for (let pair = 0; pair < PAIRS; pair++) {
    const first = pair % 2 === 0
    const before = first ? await cpuOf(off) : await cpuOf(on)
    const after = first ? await cpuOf(on) : await cpuOf(off)
    measured.push({ off: first ? before : after, more: first ? after - before : before - after })
  }
  return {
    off: trimmedMean(measured.map((each) => each.off)),
    more: trimmedMean(measured.map((each) => each.more)),
  }
}

/** @param {readonly number[]} values */
function trimmedMean(values) {
  const out = Math.floor(values.length * LEFT_OUT)
  const kept = values.toSorted((a, b) => a - b).slice(out, values.length - out)
  return kept.reduce((sum, value) => sum + value, 0) / kept.length
}
