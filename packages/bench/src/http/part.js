// Requests to servers of each framework.
import { median, ratios, spread } from '@sluice/testing/figures'
import { percent, short } from '../figures/table.js'
import { startChild } from '../processes/child.js'
import { startRedis } from '../processes/redis-servers.js'
import { frameworkNamed, frameworks } from './frameworks.js'
import { goalsOf } from './goals.js'
import { measureMode } from './measure.js'
import { modes } from './modes.js'

/**
 * @typedef {import('./measure.js').Turn} Turn
 * @typedef {keyof typeof modes} ModeName
 * @typedef {Map<string, Turn[]>} ByContender
 */

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
    'Each server is a process of its own that answers "Hello"; another process makes the requests (autocannon, 64 connections). CPU is that of the server process, all of its threads. Hand-written is a GCRA in a Map, by `req.ip`, with the same headers and the same problem document as Sluice, as a middleware, guard or hook of the framework; it is what one would write instead of taking a package.',
    'With Redis the requests are those of 1,024 users, 16 on each connection, and Sluice has `denialCache: false` and a deadline of 10 s: each request is a decision of Redis. Requests a second are counted by the clock, and the process that makes them shares the machine: a ratio near 1 may be its limit, so look at the CPU too. Added CPU is that of a request beside a server without a limiter in the same round, and its ratio that of the medians. No goal was set for Hono.',
  ],
  async measure({ rounds, wanted, say }) {
    const redis = await startRedis()
    const load = startChild(new URL('load.js', import.meta.url), ['autocannon'])
    const goals = []
    const tables = []
    try {
      for (const framework of frameworks.filter(wanted)) {
        const { title, peer, amount, isOnlyShown } = await frameworkNamed(framework)
        /** @type {Map<string, ByContender>} */
        const seen = new Map()
        for (const [name, mode] of Object.entries(modes)) {
          const names = mode.contenders(peer)
          seen.set(name, await measureMode(framework, names, mode, { load, redis, rounds, amount }))
        }
        if (!isOnlyShown) goals.push(...goalsOf(title, peer, (mode, name) => seen.get(mode)?.get(name) ?? []))
        tables.push(tableOf(title, seen))
        say(`${title}: measured`)
      }
    } finally {
      await load.stop()
      await redis.stop()
    }
    return { goals, tables }
  },
}

/**
 * @param {string} title
 * @param {Map<string, ByContender>} seen
 */
function tableOf(title, seen) {
  const rows = [...seen].flatMap(([mode, byContender]) => {
    const [first = []] = byContender.values()
    return [...byContender].map(([name, turns]) => {
      const cpu = turns.map(({ cpuUs }) => cpuUs)
      const toFirst = median(
        ratios(
          cpu,
          first.map(({ cpuUs }) => cpuUs),
        ),
      )
      const perSecond = median(turns.map((turn) => turn.perSecond))
      return [`${mode}: ${name}`, short(median(cpu)), percent(spread(cpu)), short(toFirst), short(perSecond)]
    })
  })
  return { title, columns: ['', 'CPU a request, us', 'spread', 'to the first', 'requests/s'], rows }
}
