import { startProvider } from '@sluice/testing'
import { startRedis } from '@sluice/harness/redis'
import { startCrew } from './crew.js'
import type { Job } from './job.js'
import { percent, type Outcome, type Proof } from './proof.js'

/** An unknown limit is found from the replies of the provider. */
export const proof: Proof = { title: 'unknown limit', run }

const [LIMIT, WINDOW_MS, WORKERS, CALLERS] = [50, 1000, 4, 4]

async function run(share: number): Promise<Outcome> {
  const forMs = 60_000 * share
  const crew = startCrew()
  const [redis, provider] = await Promise.all([
    startRedis(),
    startProvider({ limit: LIMIT, windowMs: WINDOW_MS, latencyMs: 5, tells: true }),
  ])
  const { host, port } = redis
  const policy = { limit: 1000, window: 1000, burst: 10 }
  const job: Job = { redis: { host, port }, origin: provider.origin, policy, callers: CALLERS, forMs }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  const reports = await shift.done
  await Promise.all([crew.end(), redis.stop()])
  provider.close()
  const { calls } = provider
  const spanMs = calls.at(-1)!.at - calls[0]!.at
  const refused = calls.filter(({ accepted }) => !accepted).length
  const most = (spanMs / WINDOW_MS) * LIMIT
  const underWay = WORKERS * CALLERS
  const pauses = (calls.length - refused) / LIMIT + 1
  const givenUp = reports.reduce((sum, report) => sum + report.refused + report.denied + report.failed, 0)
  return {
    // Without obeying replies 1,000 calls a second would go out.
    holds: calls.length <= 3 * (most + LIMIT),
    // Each time the limit is reached, what is under way is refused; two thirds is what pauses of whole seconds leave.
    pass: calls.length - refused >= 0.67 * most && refused <= underWay * pauses && givenUp === 0,
    figure:
      `${WORKERS} processes, ${(spanMs / 1000).toFixed(0)} s, provider ${LIMIT}/s, ours ${policy.limit}/s: ` +
      `${percent(calls.length - refused, most)} of the provider's limit used, ${percent(refused, calls.length)} of the ` +
      `calls were 429, ${givenUp} not served in the end`,
  }
}
