import { mostIn, startProvider } from '@sluice/testing'
import { quantile } from '@sluice/harness/figures'
import { startRedis } from '@sluice/harness/redis'
import { startCrew } from './crew.js'
import type { Job } from './job.js'
import { percent, type Outcome, type Proof } from './proof.js'

/** A limit that is known is kept to by the whole fleet, and used. */
export const proof: Proof = { title: 'known limit', timed: true, run }

const [LIMIT, OURS, WINDOW_MS, WORKERS] = [100, 98, 1000, 4]

async function run(share: number): Promise<Outcome> {
  const forMs = 60_000 * share
  const crew = startCrew()
  const [redis, provider] = await Promise.all([
    startRedis(),
    startProvider({ limit: LIMIT, windowMs: WINDOW_MS }),
  ])
  const { host, port } = redis
  const policy = { limit: OURS, window: WINDOW_MS, burst: 1 }
  const job: Job = {
    redis: { host, port },
    origin: provider.origin,
    policy,
    callers: 40,
    forMs,
  }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  const reports = await shift.done
  await Promise.all([crew.end(), redis.stop()])
  provider.close()
  const spanMs = provider.calls.at(-1)!.at - provider.calls[0]!.at
  const refused = provider.calls.filter(({ accepted }) => !accepted).length
  const most = (spanMs / WINDOW_MS) * OURS
  const booked = reports.flatMap((report) => report.booked.map(([, at]) => at)).toSorted((a, b) => a - b)
  const closest = Math.min(...booked.slice(1).map((at, i) => at - booked[i]!))
  const sent = provider.calls.map(({ tag }) => ({ at: tag - performance.timeOrigin }))
  const longestWayMs = Math.max(...provider.calls.map(({ at }, i) => at - sent[i]!.at))
  const left = mostIn(
    sent.toSorted((a, b) => a.at - b.at),
    WINDOW_MS,
  )
  const late = reports.flatMap(({ lateMs }) => lateMs)
  return {
    holds: closest >= Math.floor((WINDOW_MS * 1000) / OURS),
    pass: refused === 0 && provider.calls.length >= 0.97 * most,
    figure:
      `${WORKERS} processes, ${(spanMs / 1000).toFixed(0)} s, provider ${LIMIT} a second, ours ${OURS}: ${refused} x 429 of ` +
      `${provider.calls.length} calls, ${percent(provider.calls.length, most)} of our limit, at most ` +
      `${left} left and ${mostIn(provider.calls, WINDOW_MS)} arrived in any second, up to ${longestWayMs.toFixed(0)} ms on the ` +
      `way; of 100 calls 1 left ${quantile(late, 0.99).toFixed(0)} ms late or more, the latest ${quantile(late, 1)} ms, and ` +
      `${booked.length - late.length} turns stayed unused for that`,
  }
}
