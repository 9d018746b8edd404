// Decisions of a real Redis on this machine.
import { startRedis } from '../processes/redis-servers.js'
import { connect } from './connection.js'
import { checkExactness } from './exactness.js'
import { goalsOf } from './goals.js'
import { atHalfLoad } from './half-load.js'
import { hotKeySpeed } from './leases.js'
import { ONE_BY_ONE } from './loads.js'
import { denials, scriptTimes, startClients, underLoad } from './measure.js'
import { panelsOf } from './panels.js'
import { serverVersion } from './server-cpu.js'
import { denialTable, halfLoadTable, leaseTable, loadTables, scriptTable } from './tables.js'

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
    'One Redis without persistence on loopback, and each contender in a process of its own with one ioredis connection. Callers ask again as soon as they are answered (a closed loop). GCRA, 5,000 in ten hours a key (a million an hour for the hot one): no call is denied, and every key owes something all the time. Cost 1, keys warm; the log has a window of 1 s, so that entries come and go.',
    "Sluice is measured with `denialCache: false`, `onStoreError: 'throw'` and a deadline of 10 s: every decision is one of Redis. Only remembered denials are measured with the defaults. One by one is `groupCommit: false`. Redis CPU is that of the whole server process; scripts that travel alone are what INFO commandstats says of them.",
    'Half load is an open loop: calls come at moments drawn beforehand, whether others were answered or not, at half of the rate that one by one reached with 64 callers, and a latency counts from when the call was due. A due call is begun within about a millisecond, which is in both latencies. Leases last 100 ms; their processes call together for half a second, 256 callers each, at a limit of 5 million a second.',
  ],
  async measure({ rounds, wanted, say }) {
    const server = await startRedis()
    const control = connect(server)
    try {
      const checked = await checkExactness(server, control)
      say('checked')
      const clients = await startClients(server, wanted)
      try {
        const bench = { server, control, client: clients.client, rounds, wanted, say }
        const turns = await underLoad(bench)
        const half = await atHalfLoad(bench, turns.get('64 callers')?.get(ONE_BY_ONE) ?? [])
        say('half load: measured')
        const scripts = await scriptTimes(bench)
        const denied = await denials(bench)
        const leases = await hotKeySpeed(bench)
        return {
          goals: goalsOf({ turns, half, leases, scripts, denied }),
          panels: panelsOf(turns),
          tables: [
            ...loadTables(turns),
            halfLoadTable(half),
            leaseTable(leases),
            scriptTable(scripts),
            denialTable(denied),
          ],
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
