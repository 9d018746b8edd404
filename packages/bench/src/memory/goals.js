// The goals of decisions in memory, alone in a process and beside other limiters.
import { figureGoal, ratioGoal } from '../figures/goals.js'

/** @typedef {keyof typeof import('./workloads.js').workloads} Workload */

/**
 * @typedef {(name: string, workload: Workload) => number[]} Seen Millions of decisions a second of CPU, in each round.
 * @typedef {{ consume: Partial<Record<Workload, number>>, decide: Partial<Record<Workload, number>>, log?: number }} Wanted
 */

export const CONSUME = 'Sluice, await consume'
export const DECIDE = 'Sluice, decide'
export const LOG = 'Sluice log, decide'
export const ALL = 'Sluice, all algorithms, decide'
export const THREE = 'Sluice, three policies'
export const BARE = 'bare GCRA behind one await'
export const EXPRESS = 'express-rate-limit'
export const DENIED = 'Sluice, decide, denied'
export const BLOCKED = 'Sluice, decide, blocked by a penalty'

/** @type {Wanted} */
const ALONE = {
  consume: { 'one hot key': 0.8, '100,000 keys': 0.8 },
  decide: { 'one hot key': 1, '100,000 keys': 0.9 },
}

/** @type {Wanted} */
const MIXED = {
  consume: { 'one hot key': 0.7, '100,000 keys': 0.85, '100,000 returning keys': 0.8 },
  decide: {
    'one hot key': 1,
    '100,000 keys': 1.1,
    '100,000 returning keys': 1.1,
    '100,000 in random order': 1,
    '100,000 fresh strings': 1,
    '100,000 new keys': 1.1,
  },
  log: 0.9,
}

/**
 * @param {Seen} seen
 * @param {Map<string, number>} bytes
 */
export function goalsAlone(seen, bytes) {
  return [
    ...speedGoals('memory', ALONE, seen),
    figureGoal('memory, heap per key beside its text, 1 M keys', [DECIDE, [[bytes.get(DECIDE) ?? NaN]]], {
      atMost: 70,
      unit: 'B',
    }),
    ratioGoal(
      'memory, three policies, 10,000 keys',
      [THREE, [seen(THREE, '10,000 keys')]],
      [CONSUME, [seen(CONSUME, '10,000 keys')]],
      { atLeast: 0.7, unit: 'M/s', shown: 'one policy' },
    ),
    ratioGoal(
      'memory, key blocked by a penalty (decide)',
      [BLOCKED, [seen(BLOCKED, 'one hot key')]],
      [DENIED, [seen(DENIED, 'one hot key')]],
      { atLeast: 0.95, unit: 'M/s', shown: 'denied key' },
    ),
  ]
}

/** @param {Seen} seen */
export function goalsMixed(seen) {
  const inTurns = '100,000 in random order'
  return [
    ...speedGoals('mixed', MIXED, seen),
    ratioGoal(
      `mixed, all algorithms in turns, ${inTurns}`,
      [ALL, [seen(ALL, inTurns)]],
      [EXPRESS, [seen(EXPRESS, inTurns)]],
      {
        atLeast: 0.9,
        unit: 'M/s',
      },
    ),
    ratioGoal(
      'mixed, three policies, one hot key',
      [THREE, [seen(THREE, 'one hot key')]],
      [CONSUME, [seen(CONSUME, 'one hot key')]],
      { atLeast: 0.4, unit: 'M/s', shown: 'one policy' },
    ),
  ]
}

/**
 * @param {string} where
 * @param {Wanted} wanted
 * @param {Seen} seen
 */
function speedGoals(where, { consume, decide, log }, seen) {
  const goal = (
    /** @type {string} */ path,
    /** @type {string} */ ours,
    /** @type {string} */ peer,
    /** @type {Workload} */ workload,
    /** @type {number} */ atLeast,
  ) =>
    ratioGoal(
      `${where}, ${path}, ${workload}`,
      [ours, [seen(ours, workload)]],
      [peer, [seen(peer, workload)]],
      {
        atLeast,
        unit: 'M/s',
      },
    )
  const each = (/** @type {Partial<Record<Workload, number>>} */ bounds) =>
    /** @type {[Workload, number][]} */ (Object.entries(bounds))
  return [
    ...each(decide).map(([workload, atLeast]) => goal('decide', DECIDE, EXPRESS, workload, atLeast)),
    ...each(consume).map(([workload, atLeast]) => goal('consume', CONSUME, BARE, workload, atLeast)),
    ...(log === undefined ? [] : [goal('decide, sliding log', LOG, EXPRESS, 'one hot key', log)]),
  ]
}
