// One side beside another in one process, in rounds that take turns and in both orders: processes differ by more than such sides do.
// Both are made anew for each group of rounds, as what the compiler has decided about them stays.
import { bootstrapInterval, median } from '@sluice/harness/figures'
import { verdictOf } from './verdict.js'

const GROUPS = 6
const WARM_UP = 3

/** `run` makes the calls of a round and is measured; `prepare` comes before. @typedef {{ run: () => unknown, prepare?: () => void }} Side */
/** CPU in microseconds. @typedef {{ base: number, other: number }} Round */

/**
 * Prints the CPU of the other side as a share of that of the base: the median of the rounds' ratios, its 95 % interval, and the verdict.
 * @param {string} what
 * @param {readonly [base: () => Side | Promise<Side>, other: () => Side | Promise<Side>]} open
 * @param {{ calls: number, rounds: number, atMost: number }} measured `calls` of a round.
 */
export async function judgeBeside(what, open, { calls, rounds, atMost }) {
  const groups = []
  for (let group = 0; group < GROUPS; group++) groups.push(await roundsOf(open, group, rounds / GROUPS))
  const ratioOf = (/** @type {readonly Round[]} */ all) => median(all.map(({ base, other }) => other / base))
  const [low, high] = bootstrapInterval(groups, ratioOf)
  const ns = (1000 * median(groups.flat().map(({ base }) => base))) / calls
  const figure = `x ${ratioOf(groups.flat()).toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}] of ${ns.toFixed(0)} ns, at most ${atMost}`
  report(what, figure, verdictOf([low, high], { sense: 'at most', bound: atMost }))
}

/** @param {Parameters<typeof judgeBeside>[1]} open @param {number} group @param {number} count */
async function roundsOf(open, group, count) {
  /** @type {Side[]} */
  const sides = []
  for (const side of inTurn(group)) sides[side] = await open[side]()
  /** @type {Round[]} */
  const measured = []
  for (let i = -WARM_UP; i < count; i++) {
    const spent = [0, 0]
    for (const side of inTurn(i)) {
      sides[side]?.prepare?.()
      const before = process.cpuUsage()
      await sides[side]?.run()
      const { user, system } = process.cpuUsage(before)
      spent[side] = user + system
    }
    const [base = 0, other = 0] = spent
    if (i >= 0) measured.push({ base, other })
  }
  return measured
}

/** @param {number} round @returns {readonly (0 | 1)[]} */
function inTurn(round) {
  return round % 2 === 0 ? [0, 1] : [1, 0]
}

/**
 * Prints a row of a bench with bars. The exit code is 1 where one is not shown to be met.
 * @param {string} what
 * @param {string} figure
 * @param {import('./verdict.js').Verdict} verdict
 */
export function report(what, figure, verdict) {
  console.log(`${verdict.padEnd(9)}  ${what.padEnd(43)} ${figure}`)
  if (verdict !== 'met') process.exitCode = 1
}
