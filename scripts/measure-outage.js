// What HTTP services do while Redis is stopped, killed and restarted, beside other packages; some two and a half minutes:
// npm run measure:outage [-- NAME...]
// Each contender (measure-outage/contenders.js) is a process of its own on a Redis of its own, one after the other, under
// a load that goes on whatever becomes of it. Exit 1 when one of ours answers too late or its limits do not act again.
import { build } from 'esbuild'
import { BARE, contenders } from './measure-outage/contenders.js'
import { sitOut } from './measure-outage/outage.js'
import { printOptions, printRows, printVerdicts } from './measure-outage/report.js'
import { startService } from './measure-outage/service.js'

const wanted = process.argv.slice(2)
const bare = await startService(BARE)
const { startRedis } = await harness()
/** @type {import('./measure-outage/report.js').Result[]} */
const results = []
for (const { name } of contenders) {
  if (name === BARE) continue
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue
  const redis = await startRedis()
  try {
    const result = await sitOut(name, redis, bare.port)
    printRows(result, results.length === 0)
    results.push(result)
  } finally {
    await redis.stop()
  }
}
await bare.stop()
printOptions(results)
process.exitCode = printVerdicts(results) ? 0 : 1

/**
 * The tests' own servers.
 * @returns {Promise<{ startRedis: () => Promise<import('./measure-outage/outage.js').RedisServer> }>}
 */
async function harness() {
  const outfile = 'node_modules/.cache/sluice/outage-redis.js'
  const entryPoints = ['packages/core/test/redis/servers/redis-server.ts']
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm' })
  return import(`../${outfile}`)
}
