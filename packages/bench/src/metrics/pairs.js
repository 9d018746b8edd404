import { cpuUsage } from 'node:process'

/** Pairs of blocks. Of their differences the smallest and the largest tenth are left out: collections of the old generation. */
const PAIRS = 100
const LEFT_OUT = 0.1
/** Blocks before the first pair. */
const WARM_UP = 40

/**
 * CPU of a call while nothing listens and of one more while something does, in nanoseconds. Both are measured in one process, on
 * one limiter and in short blocks that take turns: processes, and two limiters of one process, differ from each other by more
 * than what is measured.
 * @param {number} calls Of a block.
 * @param {(calls: number) => unknown} run Makes so many calls.
 * @param {() => () => void} listen Begins to listen, and returns what ends it. Neither is measured.
 * @param {() => unknown} prepare Called before each block, and not measured.
 * @returns {Promise<{ off: number, more: number }>}
 */
export async function pairs(calls, run, listen, prepare = () => {}) {
  const cpuOf = async (/** @type {boolean} */ isOn) => {
    prepare()
    const end = isOn ? listen() : undefined
    const before = cpuUsage()
    await run(calls)
    const { user, system } = cpuUsage(before)
    end?.()
    return ((user + system) * 1000) / calls
  }
  for (let block = 0; block < WARM_UP; block++) await cpuOf(block % 2 === 1)
  /** @type {{ off: number, more: number }[]} */
  const measured = []
  for (let pair = 0; pair < PAIRS; pair++) {
    const isFirstOn = pair % 2 === 1
    const first = await cpuOf(isFirstOn)
    const second = await cpuOf(!isFirstOn)
    const [off, on] = isFirstOn ? [second, first] : [first, second]
    measured.push({ off, more: on - off })
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
