// The verdict of the rounds of a comparison about a bound. All parts of the bench, and the comparison of two builds, judge by this.

/** @typedef {'met' | 'missed' | 'not shown'} Verdict */
/** @typedef {{ sense: 'at least' | 'at most', bound: number }} Bound */

/** Rounds from which an interval is a verdict. */
export const ENOUGH_ROUNDS = 31

/** A run counts below these: the load of the machine before it, and the spread of the peer's own figures. */
const MOST_LOAD = 0.3
const MOST_SPREAD = 0.1

/**
 * Met where the whole interval is on the right side of the bound, missed where all of it is on the wrong one.
 * @param {readonly [low: number, high: number]} interval 95 %, of the median ratio.
 * @param {Bound} bound
 * @returns {Verdict}
 */
export function verdictOf([low, high], { sense, bound }) {
  const [isMet, isMissed] = sense === 'at least' ? [low >= bound, high < bound] : [high <= bound, low > bound]
  if (isMet) return 'met'
  return isMissed ? 'missed' : 'not shown'
}

/**
 * Why a verdict does not count, or undefined where it does.
 * @param {{ load: number, rounds: number, peerSpread: number }} run `peerSpread`: NaN where there is no peer.
 */
export function doubtAbout({ load, rounds, peerSpread }) {
  if (rounds < ENOUGH_ROUNDS) return `${rounds} rounds`
  if (load >= MOST_LOAD) return `load ${load.toFixed(1)}`
  if (peerSpread >= MOST_SPREAD) return `its spread ${Math.round(peerSpread * 100)} %`
  return undefined
}

/** Whether the machine is idle enough for a run to count. @param {number} load */
export function isIdle(load) {
  return load < MOST_LOAD
}
