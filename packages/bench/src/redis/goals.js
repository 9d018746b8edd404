// The goals of decisions in Redis.
import { figureGoal, ratioGoal } from '../figures/goals.js'
import { SIZES } from './leases.js'
import { BLOCKED, FLEXIBLE, LEASES, LOG, ONE_BY_ONE, SUB_BUCKETS, THREE, UNION } from './loads.js'

/**
 * @typedef {import('./measure.js').Turn} Turn
 * @typedef {import('../figures/goals.js').Bound} Bound
 * @typedef {object} Seen
 * @property {Map<string, Map<string, Turn[]>>} turns By load and contender.
 * @property {{ turns: Map<string, { p99: number }[]> }} half
 * @property {Map<number, Map<string, number[]>>} leases Allowed a second, by processes and contender.
 * @property {Map<string, number[]>} scripts Microseconds of scripts that ran alone.
 * @property {Map<string, { perCpuSecond: number }[]>} denied
 */

/** The time that rate-limiter-flexible's script takes where the goals were set, in microseconds: figures are scaled to that. */
const SCRIPT_US = 4.5

/** @param {Seen} seen */
export function goalsOf({ turns, half, leases, scripts, denied }) {
  /** One group: a client process lives for the whole run. @returns {[name: string, figures: number[][]]} */
  const of = (
    /** @type {string} */ load,
    /** @type {string} */ name,
    /** @type {keyof Turn} */ figure,
    scale = 1,
  ) => [name, [(turns.get(load)?.get(name) ?? []).map((turn) => turn[figure] * scale)]]

  const faster = (
    /** @type {string} */ load,
    /** @type {string} */ peer,
    /** @type {number} */ atLeast,
    ours = 'Sluice',
  ) => {
    const path = peer === 'SET' ? `Redis, ${load}, beside SET` : `Redis, ${load}`
    return ratioGoal(path, of(load, ours, 'perSecond', 1e-3), of(load, peer, 'perSecond', 1e-3), {
      atLeast,
      unit: 'k/s',
    })
  }
  const sooner = (
    /** @type {string} */ load,
    /** @type {string} */ peer,
    /** @type {'p50' | 'p99'} */ figure,
    /** @type {number} */ atMost,
  ) =>
    ratioGoal(`Redis, ${load}, ${figure}`, of(load, 'Sluice', figure), of(load, peer, figure), {
      atMost,
      unit: 'ms',
    })
  const script = (/** @type {string} */ name) => scripts.get(name) ?? []
  /** Beside what the peer's script takes, which says how fast the machine is. */
  const loaded = (
    /** @type {string} */ what,
    /** @type {string} */ load,
    /** @type {string} */ name,
    /** @type {number} */ atMost,
  ) =>
    ratioGoal(
      `Redis CPU a decision, 256 callers, ${what}`,
      of(load, name, 'serverUs'),
      [FLEXIBLE, [script(FLEXIBLE)]],
      {
        atMost: atMost / SCRIPT_US,
        unit: 'us',
        shown: `script of ${FLEXIBLE}`,
      },
    )
  const lonely = (/** @type {string} */ what, /** @type {string} */ name, /** @type {number} */ atMost) =>
    ratioGoal(`Redis CPU of a call alone, ${what}`, [name, [script(name)]], [FLEXIBLE, [script(FLEXIBLE)]], {
      atMost,
      unit: 'us',
    })
  /** @returns {[name: string, figures: number[][]]} */
  const unhurried = (/** @type {string} */ name) => [
    name,
    [(half.turns.get(name) ?? []).map(({ p99 }) => p99)],
  ]
  const leased = (/** @type {number} */ size) => {
    /** @returns {[name: string, figures: number[][]]} */
    const figures = (/** @type {string} */ name) => [
      name,
      [(leases.get(size)?.get(name) ?? []).map((each) => each / 1e6)],
    ]
    const path = `Redis, one hot key, ${size} processes with leases`
    return ratioGoal(path, figures(LEASES), figures('Sluice'), { atLeast: 10, unit: 'M/s' })
  }
  /** @returns {[name: string, figures: number[][]]} */
  const denials = (/** @type {string} */ name) => [
    name,
    [(denied.get(name) ?? []).map(({ perCpuSecond }) => perCpuSecond / 1e6)],
  ]

  return [
    faster('8 callers', FLEXIBLE, 1),
    faster('64 callers', FLEXIBLE, 2.7),
    faster('256 callers', FLEXIBLE, 4.5),
    faster('256 callers, one hot key', FLEXIBLE, 8),
    faster('256 callers, three policies', UNION, 9, THREE),
    sooner('1 caller', 'SET', 'p50', 1.3),
    loaded('one policy', '256 callers', 'Sluice', 2.6),
    loaded('three policies', '256 callers, three policies', THREE, 4),
    loaded('a log', '256 callers, a log', LOG, 5),
    loaded('60 sub-buckets', '256 callers, 60 sub-buckets', SUB_BUCKETS, 4),
    lonely('one policy', 'Sluice', 1.1),
    lonely('a log', LOG, 2),
    lonely('60 sub-buckets', SUB_BUCKETS, 2),
    sooner('64 callers', FLEXIBLE, 'p99', 1),
    sooner('256 callers', FLEXIBLE, 'p99', 1),
    ratioGoal('Redis, half load, p99', unhurried('Sluice'), unhurried(ONE_BY_ONE), { atMost: 1, unit: 'ms' }),
    ...SIZES.map(leased),
    figureGoal('denied key, from memory (decide)', denials('Sluice, decide'), { atLeast: 5, unit: 'M/s' }),
    ratioGoal('key blocked by a penalty, from memory (decide)', denials(BLOCKED), denials('Sluice, decide'), {
      atLeast: 0.95,
      unit: 'M/s',
      shown: 'denied key',
    }),
  ]
}
