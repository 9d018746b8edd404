// The answers of HTTP services while Redis is stopped, killed and restarted, beside other packages; some two and a half minutes:
// npm run bench -- outage [NAME...]
// Each contender (contenders.js) is a process of its own on a Redis of its own, one after the other, under
// a load that goes on whatever becomes of it. Exit 1 when one of ours answers too late or its limits do not act again.
import { startRedis } from '../processes/redis-servers.js'
import { BARE, contenders } from './contenders.js'
import { sitOut } from './outage.js'
import { printOptions, printTable, printVerdicts } from './report.js'
import { startService } from './service.js'

const wanted = process.argv.slice(2)
const bare = await startService(BARE)
/** @type {import('./report.js').Result[]} */
const results = []
for (const { name } of contenders) {
  if (name === BARE) continue
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue
  const redis = await startRedis()
  try {
    results.push(await sitOut(name, redis, bare.port))
    process.stderr.write(`${name}: measured\n`)
  } finally {
    await redis.stop()
  }
}
await bare.stop()
printTable(results)
printOptions(results)
process.exitCode = printVerdicts(results) ? 0 : 1
