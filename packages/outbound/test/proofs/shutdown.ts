import { msToEnd } from '@sluice/harness/processes'
import { startRedis } from '@sluice/harness/redis'
import type { Moment } from './ending-worker.js'
import type { Outcome, Proof } from './proof.js'

/** A process that makes calls ends by itself soon after it has closed what it made, in the middle of an outage too. */
export const proof: Proof = { title: 'shutdown', timed: true, run }

const BAR_MS = 100
const PROGRAM = 'packages/outbound/test/proofs/ending-worker.ts'

async function run(): Promise<Outcome> {
  const redis = await startRedis()
  const at = { host: redis.host, port: redis.port }
  const endings: [string, number][] = []
  for (const moment of ['nothing', 'waiting', 'pausing'] as const) {
    endings.push([`memory, ${moment}`, await ending(moment)])
    endings.push([`Redis, ${moment}`, await ending(moment, at)])
    endings.push([`Redis stopped, ${moment}`, await ending(moment, at, () => redis.pause())])
    redis.resume()
  }
  endings.push(['Redis stopped, an outage', await ending('an outage', at, () => redis.pause())])
  redis.resume()
  endings.push(['no Redis, an outage', await ending('an outage', { host: '127.0.0.1', port: 1 })])
  await redis.stop()
  const [slowest, longest] = endings.reduce((a, b) => (b[1] > a[1] ? b : a))
  return {
    holds: longest < Infinity,
    pass: longest <= BAR_MS,
    figure: `${endings.length} endings: ended ${longest.toFixed(0)} ms after close() at most (bar ${BAR_MS}; ${slowest})`,
  }
}

function ending(moment: Moment, where?: object, onReady?: () => void): Promise<number> {
  return msToEnd(PROGRAM, [moment, ...(where ? [JSON.stringify(where)] : [])], onReady)
}
