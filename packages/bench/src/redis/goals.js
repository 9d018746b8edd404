// What was wanted of decisions in Redis.
import { figureGoal, ratioGoal } from '../figures/goals.js'
import { SIZES } from './leases/speed.js'
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

/** @param {Seen} seen */
export function goalsOf({ turns, half, leases, scripts, denied }) {
  const figures = (
    /** @type {string} */ load,
    /** @type {string} */ name,
    /** @type {keyof Turn} */ figure,
  ) => (turns.get(load)?.get(name) ?? []).map((turn) => turn[figure])

  const faster = (
    /** @type {string} */ load,
    /** @type {string} */ peer,
    /** @type {number} */ atLeast,
    ours = 'Sluice',
  ) => {
    const of = (/** @type {string} */ name) => figures(load, name, 'perSecond').map((each) => each / 1000)
    const path = peer === 'SET' ? `Redis, ${load}, beside SET` : `Redis, ${load}`
    return ratioGoal(path, of(ours), [peer, of(peer)], { atLeast, unit: 'k/s' })
  }
  const sooner = (
    /** @type {string} */ load,
    /** @type {string} */ peer,
    /** @type {'p50' | 'p99'} */ figure,
    /** @type {number} */ atMost,
  ) => {
    const of = (/** @type {string} */ name) => figures(load, name, figure)
    return ratioGoal(`Redis, ${load}, ${figure}`, of('Sluice'), [peer, of(peer)], { atMost, unit: 'ms' })
  }
  const loaded = (
    /** @type {string} */ what,
    /** @type {string} */ load,
    /** @type {string} */ name,
    /** @type {number} */ atMost,
  ) =>
    figureGoal(`Redis CPU a decision, 256 callers, ${what}`, figures(load, name, 'serverUs'), {
      atMost,
      unit: 'us',
    })
  const lonely = (/** @type {string} */ what, /** @type {string} */ name, /** @type {number} */ atMost) => {
    const flexible = scripts.get(FLEXIBLE) ?? []
    const path = `Redis CPU of a call alone, ${what}`
    return ratioGoal(path, scripts.get(name) ?? [], [FLEXIBLE, flexible], { atMost, unit: 'us' })
  }
  const unhurried = (/** @type {string} */ name) => (half.turns.get(name) ?? []).map(({ p99 }) => p99)
  const leased = (/** @type {number} */ size) => {
    const of = (/** @type {string} */ name) => (leases.get(size)?.get(name) ?? []).map((each) => each / 1e6)
    const path = `Redis, one hot key, ${size} processes with leases`
    return ratioGoal(path, of(LEASES), ['Sluice', of('Sluice')], { atLeast: 10, unit: 'M/s' })
  }
  const denials = (/** @type {string} */ name) =>
    (denied.get(name) ?? []).map(({ perCpuSecond }) => perCpuSecond / 1e6)

  return [
    sooner('1 caller', 'SET', 'p50', 1.25),
    faster('8 callers', FLEXIBLE, 1),
    faster('64 callers', FLEXIBLE, 2.5),
    faster('256 callers', FLEXIBLE, 5),
    faster('256 callers', 'SET', 3),
    sooner('64 callers', FLEXIBLE, 'p99', 1),
    sooner('256 callers', FLEXIBLE, 'p99', 1),
    ratioGoal('Redis, half load, p99', unhurried('Sluice'), [ONE_BY_ONE, unhurried(ONE_BY_ONE)], {
      atMost: 1,
      unit: 'ms',
    }),
    faster('256 callers, one hot key', FLEXIBLE, 10),
    ...SIZES.map(leased),
    faster('256 callers, three policies', UNION, 10, THREE),
    loaded('one policy', '256 callers', 'Sluice', 3),
    loaded('three policies', '256 callers, three policies', THREE, 4),
    loaded('a log', '256 callers, a log', LOG, 5),
    lonely('one policy', 'Sluice', 1.5),
    lonely('a log', LOG, 2.2),
    lonely('60 sub-buckets', SUB_BUCKETS, 2.2),
    figureGoal('denied key, from memory (decide)', denials('Sluice, decide'), { atLeast: 5, unit: 'M/s' }),
    ratioGoal(
      'key blocked by a penalty, from memory (decide)',
      denials(BLOCKED),
      ['denied key', denials('Sluice, decide')],
      { atLeast: 0.95, unit: 'M/s' },
    ),
  ]
}
