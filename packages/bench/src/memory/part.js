// Decisions in the process's own memory.
import { inRounds } from '../figures/rounds.js'
import { median, spread } from '@sluice/testing/figures'
import { percent, short } from '../figures/table.js'
import { startChild } from '../processes/child.js'
import { contenders } from './contenders.js'
import { goalsOf } from './goals.js'
import { workloads } from './workloads.js'

/** @typedef {import('../report.js').Part} Part */
/** @typedef {import('./goals.js').Workload} Workload */

/** Has no keys, or not many. */
const WEIGHTLESS = ['await of nothing', 'bottleneck']

/** @type {Part} */
export const memory = {
  name: 'memory',
  title: 'In memory',
  packages: [
    'rate-limiter-flexible',
    'express-rate-limit',
    '@nestjs/throttler',
    'koa-ratelimit',
    '@fastify/rate-limit',
    'hono-rate-limiter',
    'limiter',
    'bottleneck',
  ],
  notes: [
    'One process, cost 1, limits that nobody reaches; warm keys with a window of 60 s, new ones with 1 s. Every contender takes each turn in a fresh process; before, each had to admit three calls of five at a limit of three.',
    'Decisions a second of CPU of the process (what its garbage collector uses included), so that others on the machine hardly count. Keys are called one after the other. "await" lines are awaited, the others answer without a promise: decide, @fastify/rate-limit, hono-rate-limiter, the bare Map and the bare GCRA.',
  ],
  async measure({ rounds, wanted, say }) {
    const names = Object.keys(contenders).filter(wanted)
    const weighed = names.filter((name) => !WEIGHTLESS.includes(name))
    for (const name of names) await asked(turn, name, { what: 'check' })
    const turns = await inRounds(names, { rounds }, (name) => asked(turn, name, { what: 'measure' }))
    say('speed is measured, memory comes')
    /** @type {Map<string, number>} */
    const bytes = new Map()
    for (const name of weighed) bytes.set(name, await asked(heap, name, {}))
    const seen = (/** @type {string} */ name, /** @type {Workload} */ workload) =>
      (turns.get(name) ?? []).map((turn) => (turn[workload] ?? NaN) / 1e6)
    return { goals: goalsOf(seen, bytes), tables: [tableOf(names, seen, bytes)] }
  },
}

const turn = new URL('turn.js', import.meta.url)
const heap = new URL('heap.js', import.meta.url)

/**
 * @param {URL} module
 * @param {string} name
 * @param {object} question
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
 * @param {Map<string, number>} bytes
 */
function tableOf(names, seen, bytes) {
  const titles = /** @type {Workload[]} */ (Object.keys(workloads))
  return {
    title:
      'Million decisions a second of CPU, medians and the spread of the middle half; bytes a key beside its text',
    columns: ['', ...titles, 'heap a key'],
    rows: names.map((name) => [
      name,
      ...titles.map((title) => {
        const figures = seen(name, title)
        return Number.isNaN(median(figures)) ? '-' : `${short(median(figures))} (${percent(spread(figures))})`
      }),
      bytes.has(name) ? `${short(bytes.get(name) ?? NaN)} B` : '-',
    ]),
  }
}
