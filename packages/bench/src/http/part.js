// Requests to servers of each framework.
import { median, spread } from '@sluice/harness/figures'
import { percent, short } from '../figures/table.js'
import { frameworkNamed, frameworks } from './frameworks.js'
import { goalOf } from './goals.js'
import { measureInProcess } from './in-process/measure.js'
import { BARE, HAND_WRITTEN, SLUICE } from './modes.js'

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
    'koa-ratelimit',
    '@nestjs/throttler',
    '@fastify/rate-limit',
    'hono-rate-limiter',
  ],
  notes: [
    "Node's own request and response objects are given to the handler of the framework's server, one after the other, without a socket, a parser or another process. So the whole framework is measured and no noise of the kernel. CPU a request is that of the process, its garbage collector included; each contender has a process of its own with two servers, one whose limit is never reached and one whose caller has used its limit up. Hand-written is a GCRA in a Map, by `req.ip`, with the same headers and the same problem document as Sluice, as a middleware, guard or hook of the framework; it is what one would write instead of taking a package. Added CPU is that beside a server without a limiter in the same round, and its ratio that of the medians.",
  ],
  async measure({ rounds, wanted, say }) {
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
    return { goals, tables, panels }
  },
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
