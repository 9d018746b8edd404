// Decisions of a real Redis on this machine.
import { startRedis } from '../processes/redis-servers.js'
import { connect } from './connection.js'
import { checkExactness } from './exactness.js'
import { goalsOf } from './goals.js'
import { denials, scriptTimes, startClients, underLoad } from './measure.js'
import { serverVersion } from './server-cpu.js'
import { denialTable, loadTables, scriptTable } from './tables.js'

/** @type {import('../report.js').Part} */
export const redis = {
  name: 'redis',
  title: 'Redis',
  packages: [
    'ioredis',
    'rate-limiter-flexible',
    'rate-limit-redis',
    'koa-ratelimit',
    '@nest-lab/throttler-storage-redis',
    '@fastify/rate-limit',
  ],
  notes: [
    'One Redis without persistence on loopback, and each contender in a process of its own with one ioredis connection. Callers ask again as soon as they are answered (a closed loop). Limits that nobody reaches, GCRA, a window of 60 s, cost 1, keys warm; the log has a window of 1 s, so that entries come and go.',
    "Sluice is measured with `denialCache: false`, `onStoreError: 'throw'` and a deadline of 10 s: every decision is one of Redis. Only remembered denials are measured with the defaults. Redis CPU is that of the whole server process; scripts that travel alone are what INFO commandstats says of them.",
  ],
  async measure({ rounds, wanted, say }) {
    const server = await startRedis()
    const control = connect(server)
    try {
      const checked = await checkExactness(server, control)
      const clients = await startClients(server, wanted)
      try {
        const bench = { server, control, client: clients.client, rounds, wanted, say }
        const turns = await underLoad(bench)
        const scripts = await scriptTimes(bench)
        const denied = await denials(bench)
        return {
          goals: goalsOf({ turns, scripts, denied }),
          tables: [...loadTables(turns), scriptTable(scripts), denialTable(denied)],
          checked: [`Redis ${await serverVersion(control)}`, ...checked],
        }
      } finally {
        await clients.stop()
      }
    } finally {
      control.disconnect()
      await server.stop()
    }
  },
}
