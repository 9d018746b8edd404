import { startRedis } from '../../../core/test/redis/servers/redis-server.js'
import { startCrew } from './crew.js'
import type { Job } from './job.js'
import { percent, type Outcome, type Proof } from './proof.js'
import { mostIn, startProvider } from './provider.js'

/** A limit that is known is kept to by the whole fleet, and used. */
export const proof: Proof = { title: 'known limit', run }

const [LIMIT, OURS, WINDOW_MS, WORKERS] = [1000, 980, 10_000, 4]

async function run(share: number): Promise<Outcome> {
  const forMs = 60_000 * share
  const [redis, crew, provider] = await Promise.all([
    startRedis(),
    startCrew(),
    startProvider({ limit: LIMIT, windowMs: WINDOW_MS }),
  ])
  const { host, port } = redis
  const policy = { limit: OURS, window: WINDOW_MS, burst: 1 }
  const job: Job = { redis: { host, port }, origin: provider.origin, policy, callers: 40, forMs }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  const reports = await shift.done
  await Promise.all([crew.end(), redis.stop()])
  provider.close()
  const spanMs = provider.calls.at(-1)!.at - provider.calls[0]!.at
  const refused = provider.calls.filter(({ accepted }) => !accepted).length
  const most = (spanMs / WINDOW_MS) * OURS
  const booked = reports.flatMap((report) => report.booked.map(([, at]) => at)).toSorted((a, b) => a - b)
  const closest = Math.min(...booked.slice(1).map((at, i) => at - booked[i]!))
  return {
    holds: closest >= Math.floor((WINDOW_MS * 1000) / OURS),
    pass: refused === 0 && provider.calls.length >= 0.97 * most,
    figure:
      `${WORKERS} processes, ${(spanMs / 1000).toFixed(0)} s, provider ${LIMIT} per 10 s, ours ${OURS}: ${refused} x 429 of ` +
      `${provider.calls.length} calls, ${percent(provider.calls.length, most)} of our limit, at most ` +
      `${mostIn(provider.calls, WINDOW_MS)} in any 10 s and ${mostIn(provider.calls, 1000)} in any second`,
  }
}
