import { startProvider } from '@sluice/testing'
import { startRedis } from '@sluice/harness/redis'
import { startCrew } from './crew.js'
import type { Job } from './job.js'
import type { Outcome, Proof } from './proof.js'

/** A provider that is overloaded for three seconds gets a few calls meanwhile, and serves every one afterwards. */
export const proof: Proof = { title: 'overload', run }

const [WORKERS, CALLERS, BEGIN_MS, LASTS_MS, END_MS, MOST_SENDS] = [4, 20, 1500, 3000, 10_000, 40]

async function run(): Promise<Outcome> {
  const crew = startCrew()
  const isOver = (atMs: number): boolean => atMs < BEGIN_MS || atMs >= BEGIN_MS + LASTS_MS
  const [redis, provider] = await Promise.all([
    startRedis(),
    startProvider({
      limit: 1000,
      windowMs: 1000,
      latencyMs: 20,
      answer: (atMs) => (isOver(atMs) ? undefined : { status: 529 }),
    }),
  ])
  const { host, port } = redis
  const job: Job = {
    redis: { host, port },
    origin: provider.origin,
    policy: { limit: 100, window: 1000, burst: 1 },
    callers: CALLERS,
    forMs: END_MS,
  }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  const reports = await shift.done
  await Promise.all([crew.end(), redis.stop()])
  provider.close()
  const refused = provider.calls.filter(({ accepted }) => !accepted)
  const unserved = reports.reduce((sum, report) => sum + report.refused + report.denied + report.failed, 0)
  const overAt = provider.calls[0]!.at + BEGIN_MS + LASTS_MS
  const backMs = (provider.calls.find(({ at }) => at >= overAt)?.at ?? Infinity) - overAt
  const pass = refused.length > 0 && refused.length <= MOST_SENDS && unserved === 0 && backMs < 60_000
  return {
    holds: pass,
    pass,
    figure:
      `${WORKERS} processes of ${CALLERS} callers, 529 for ${LASTS_MS / 1000} s: ${refused.length} sends into it (bar ${MOST_SENDS}), ` +
      `${unserved} calls not served, tried again ${backMs.toFixed(0)} ms after its end, ` +
      `${reports.reduce((sum, { ok }) => sum + ok, 0)} served in ${END_MS / 1000} s`,
  }
}
