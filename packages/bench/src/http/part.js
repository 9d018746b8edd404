// Requests to servers of each framework.
import { median, ratios, spread } from '@sluice/harness/figures'
import { percent, short } from '../figures/table.js'
import { startChild } from '../processes/child.js'
import { startRedis } from '../processes/redis-servers.js'
import { frameworkNamed, frameworks } from './frameworks.js'
import { goalOf } from './goals.js'
import { measureOnRedis } from './measure.js'
import { measureInProcess } from './in-process/measure.js'
import { BARE, HAND_WRITTEN, onRedis, SLUICE } from './modes.js'

/** @typedef {import('./measure.js').Turn} Turn */

/** @type {import('../report.js').Part} */
export const http = {
  name: 'http',
  title: 'HTTP',
  packages: [
    'express',
    'koa',
    '@nestjs/core',
    'fastify',
    'hono',
    '@hono/node-server',
    'express-rate-limit',
    'rate-limit-redis',
    'koa-ratelimit',
    '@nestjs/throttler',
    '@nest-lab/throttler-storage-redis',
    '@fastify/rate-limit',
    'hono-rate-limiter',
    'autocannon',
  ],
  notes: [
    "In the process: Node's own request and response objects are given to the handler of the framework's server, one after the other, without a socket, a parser or another process. So the whole framework is measured and no noise of the kernel. CPU a request is that of the process, its garbage collector included; each contender has a process of its own with two servers, one whose limit is never reached and one whose caller has used its limit up. Hand-written is a GCRA in a Map, by `req.ip`, with the same headers and the same problem document as Sluice, as a middleware, guard or hook of the framework; it is what one would write instead of taking a package. Added CPU is that beside a server without a limiter in the same round, and its ratio that of the medians.",
    'Over sockets, with Redis: another process makes the requests (autocannon, 64 connections) of a server process that answers "Hello". They are those of 1,024 users, 16 on each connection, and Sluice has `denialCache: false` and a deadline of 10 s: each request is a decision of Redis. Requests a second are counted by the clock, and the process that makes them shares the machine: a ratio near 1 may be its limit, so look at the CPU too.',
  ],
  async measure({ rounds, wanted, goalsOnly, say }) {
    const goals = []
    const tables = []
    const panels = []
    for (const framework of frameworks.filter(wanted)) {
      const about = await frameworkNamed(framework)
      const names = [BARE, HAND_WRITTEN, SLUICE, about.peer]
      const turns = await measureInProcess(framework, names, rounds)
      goals.push(goalOf(framework, about, turns))
      tables.push(inProcessTable(about.title, turns))
      panels.push(panelOf(about, turns))
      say(`${about.title}: measured in the process`)
    }
    if (!goalsOnly) tables.push(...(await overSockets(Math.ceil(rounds / SELDOM), wanted, say)))
    return { goals, tables, panels }
  },
}

/** Rounds in the process for one over sockets, which judges nothing. */
const SELDOM = 6

/**
 * @param {number} rounds
 * @param {(name: string) => boolean} wanted
 * @param {(line: string) => void} say
 */
async function overSockets(rounds, wanted, say) {
  const redis = await startRedis()
  const load = startChild(new URL('load.js', import.meta.url), ['autocannon'])
  const tables = []
  try {
    for (const framework of frameworks.filter(wanted)) {
      const { title, peer, amount } = await frameworkNamed(framework)
      const seen = await measureOnRedis(framework, onRedis(peer), { load, redis, rounds, amount })
      tables.push(tableOf(`${title} on Redis, over sockets`, seen))
      say(`${title}: measured over sockets`)
    }
  } finally {
    await load.stop()
    await redis.stop()
  }
  return tables
}

/**
 * @param {string} title
 * @param {import('./in-process/measure.js').Turns} turns
 * @returns {import('../figures/table.js').Table}
 */
function inProcessTable(title, turns) {
  const cell = (/** @type {readonly number[]} */ figures) =>
    Number.isNaN(median(figures)) ? '-' : `${short(median(figures))} (${percent(spread(figures))})`
  const rows = [...(turns[0]?.keys() ?? [])].map((name) => {
    const all = turns.flatMap((group) => group.get(name) ?? [])
    return [name, cell(all.map(({ allowedUs }) => allowedUs)), cell(all.map(({ deniedUs }) => deniedUs))]
  })
  return {
    title: `${title} in the process: CPU a request in us, medians and the spread of the middle half`,
    columns: ['', 'allowed', 'denied'],
    rows,
  }
}

/**
 * @param {{ title: string, peer: string }} about
 * @param {import('./in-process/measure.js').Turns} turns
 * @returns {import('../figures/chart.js').Panel}
 */
function panelOf({ title, peer }, turns) {
  const bars = [BARE, SLUICE, peer, HAND_WRITTEN].map((name) => {
    const us = turns.flatMap((group) => (group.get(name) ?? []).map(({ allowedUs }) => allowedUs))
    return { name: NAMES.get(name) ?? name, value: 1e6 / median(us), kind: kindOf(name) }
  })
  return { title, about: 'requests a second of CPU', bars }
}

/** @param {string} name @returns {import('../figures/chart.js').Bar['kind']} */
function kindOf(name) {
  if (name === SLUICE) return 'sluice'
  return name === BARE || name === HAND_WRITTEN ? 'floor' : 'peer'
}

const NAMES = new Map([
  [BARE, 'no limiter'],
  [HAND_WRITTEN, 'written by hand'],
])

/**
 * @param {string} title
 * @param {Map<string, Turn[]>} seen
 */
function tableOf(title, seen) {
  const [first = []] = [...seen.values()].map((turns) => turns.map(({ cpuUs }) => cpuUs))
  const rows = [...seen].map(([name, turns]) => {
    const cpu = turns.map(({ cpuUs }) => cpuUs)
    const perSecond = median(turns.map((turn) => turn.perSecond))
    const toFirst = median(ratios(cpu, first))
    return [name, short(median(cpu)), percent(spread(cpu)), short(toFirst), short(perSecond)]
  })
  return { title, columns: ['', 'CPU a request, us', 'spread', 'to the first', 'requests/s'], rows }
}
