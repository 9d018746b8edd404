// Decisions in the process's own memory.
import { inRounds } from '../figures/rounds.js'
import { median, spread } from '@sluice/harness/figures'
import { percent, short } from '../figures/table.js'
import { startChild } from '../processes/child.js'
import { contenders } from './contenders.js'
import {
  BARE,
  BLOCKED,
  CONSUME,
  DECIDE,
  DENIED,
  EXPRESS,
  goalsAlone,
  goalsMixed,
  LOG,
  ALL,
  THREE,
} from './goals.js'
import { workloads } from './workloads.js'

/** @typedef {import('../report.js').Part} Part */
/** @typedef {import('./goals.js').Workload} Workload */

/** Has no keys, or not many. */
const WEIGHTLESS = ['await of nothing', 'bottleneck', DENIED, BLOCKED]

/** Whom a goal needs, alone or mixed; the others are only shown. */
const JUDGED = [CONSUME, DECIDE, LOG, ALL, THREE, BARE, EXPRESS, DENIED, BLOCKED]

/** Limits are reached in these, so they are in no chart, and not among other limiters. */
const DENYING = [DENIED, BLOCKED]

const PACKAGES = [
  'rate-limiter-flexible',
  'express-rate-limit',
  '@nestjs/throttler',
  'koa-ratelimit',
  '@fastify/rate-limit',
  'hono-rate-limiter',
  'limiter',
  'bottleneck',
]

/** What a service's callers do, beside the one key that others measure. @type {readonly Workload[]} */
const PRODUCTION = [
  'one hot key',
  '100,000 keys',
  '100,000 returning keys',
  '100,000 in random order',
  '100,000 fresh strings',
  '100,000 new keys',
]

/** @type {Part} */
export const memory = {
  name: 'memory',
  title: 'In memory',
  packages: PACKAGES,
  notes: [
    'One process, cost 1, limits that are never reached (but for the two that deny every call); warm keys with a window of 60 s, new ones with 1 s. Every contender takes each turn in a fresh process; before, each had to admit three calls of five at a limit of three. A contender that no goal needs takes a turn in every fourth round.',
    'Decisions a second of CPU of the process (what its garbage collector uses included), so that others on the machine hardly count. Keys are called one after the other. "await" lines are awaited, the others answer without a promise: decide, @fastify/rate-limit, hono-rate-limiter, the bare Map and the bare GCRA.',
  ],
  async measure({ rounds, wanted, say }) {
    const names = Object.keys(contenders).filter(wanted)
    const seen = await speeds(names, rounds, 'measure')
    say('speed is measured, memory comes')
    /** @type {Map<string, number>} */
    const bytes = new Map()
    for (const name of names.filter((each) => !WEIGHTLESS.includes(each)))
      bytes.set(name, await asked(heap, name, {}))
    return {
      goals: goalsAlone(seen, bytes),
      tables: [tableOf(names, seen, bytes)],
      panels: panelsOf(names, seen, ['one hot key', '100,000 keys', '100,000 new keys']),
    }
  },
}

/** @type {Part} */
export const mixed = {
  name: 'mixed',
  title: 'In memory, beside other limiters',
  packages: ['express-rate-limit'],
  notes: [
    'As a service has it: before a contender is timed, other limiters of the same package are used in its process, so that the compiled code knows all of them. For Sluice these are limiters of every algorithm, and one of three policies, each with decide and consume; for the others, which have one algorithm, eight limiters of it. Otherwise as [in memory](memory.md).',
  ],
  async measure({ rounds, wanted }) {
    const names = JUDGED.filter((name) => !DENYING.includes(name) && wanted(name))
    const seen = await speeds(names, rounds, 'measure mixed')
    return {
      goals: goalsMixed(seen),
      tables: [tableOf(names, seen)],
      panels: panelsOf(names, seen, PRODUCTION),
    }
  },
}

/**
 * @param {readonly string[]} names
 * @param {number} rounds
 * @param {'measure' | 'measure mixed'} what
 * @returns {Promise<import('./goals.js').Seen>}
 */
async function speeds(names, rounds, what) {
  for (const name of names) await asked(turn, name, { what: 'check' })
  const often = (/** @type {string} */ name) => JUDGED.includes(name)
  const turns = await inRounds(names, { rounds, often }, (name) => asked(turn, name, { what }))
  return (name, workload) => (turns.get(name) ?? []).map((each) => (each[workload] ?? NaN) / 1e6)
}

/** Contenders as one would write them by hand, which limit nothing or next to nothing. */
const FLOORS = ['await of nothing', 'a bare Map', 'bare GCRA', BARE]

/**
 * @param {readonly string[]} names
 * @param {import('./goals.js').Seen} seen
 * @param {readonly Workload[]} titles
 * @returns {import('../figures/chart.js').Panel[]}
 */
function panelsOf(names, seen, titles) {
  return titles.map((title) => ({
    title,
    about: 'decisions a second of CPU',
    bars: names
      .filter((name) => name !== 'await of nothing' && name !== 'a bare Map' && !DENYING.includes(name))
      .map((name) => ({ name, value: 1e6 * median(seen(name, title)), kind: kindOf(name) }))
      .filter(({ value }) => Number.isFinite(value)),
  }))
}

/** @param {string} name @returns {import('../figures/chart.js').Bar['kind']} */
function kindOf(name) {
  if (name.startsWith('Sluice')) return 'sluice'
  return FLOORS.includes(name) ? 'floor' : 'peer'
}

const turn = new URL('turn.js', import.meta.url)
const heap = new URL('heap.js', import.meta.url)

/**
 * @param {URL} module
 * @param {string} name
 * @param {{ what?: 'check' | 'measure' | 'measure mixed' }} question
 */
async function asked(module, name, question) {
  const child = startChild(module, [name])
  try {
    return await child.ask(question)
  } finally {
    await child.stop()
  }
}

/**
 * @param {readonly string[]} names
 * @param {import('./goals.js').Seen} seen
 * @param {Map<string, number>} [bytes]
 */
function tableOf(names, seen, bytes) {
  const titles = /** @type {Workload[]} */ (Object.keys(workloads))
  return {
    title:
      'Million decisions a second of CPU, medians and the spread of the middle half' +
      (bytes ? '; bytes a key beside its text' : ''),
    columns: ['', ...titles, ...(bytes ? ['heap a key'] : [])],
    rows: names.map((name) => [
      name,
      ...titles.map((title) => {
        const figures = seen(name, title)
        return Number.isNaN(median(figures)) ? '-' : `${short(median(figures))} (${percent(spread(figures))})`
      }),
      ...(bytes ? [bytes.has(name) ? `${short(bytes.get(name) ?? NaN)} B` : '-'] : []),
    ]),
  }
}
