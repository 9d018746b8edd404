import { mostIn, startProvider } from '@sluice/testing'
import { pause, startRedis } from '@sluice/harness/redis'
import { startCrew } from './crew.js'
import type { Job } from './job.js'
import type { Outcome, Proof } from './proof.js'

/** Aborts all the time, a worker killed, and Redis killed and started anew without its data. */
export const proof: Proof = { title: 'trouble', timed: true, run }

const [LIMIT, OURS, WINDOW_MS, WORKERS, AT_ONCE, LEASE_MS, CALLERS] = [1000, 980, 10_000, 4, 5, 2000, 8]

async function run(share: number): Promise<Outcome> {
  const forMs = 30_000 * share
  const crew = startCrew()
  const [redis, provider] = await Promise.all([
    startRedis(),
    startProvider({ limit: LIMIT, windowMs: WINDOW_MS, latencyMs: 20 }),
  ])
  const { host, port } = redis
  const job: Job = {
    redis: { host, port },
    origin: provider.origin,
    policy: { limit: OURS, window: WINDOW_MS, burst: 1 },
    callers: CALLERS,
    forMs,
    semaphore: { limit: AT_ONCE, lease: LEASE_MS },
    abortShare: 0.3,
  }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  await pause(forMs / 4)
  shift.workers[0]!.kill('SIGKILL')
  const second = await crew.start([{ ...job, forMs: forMs / 2 }])
  await pause(forMs / 4)
  await redis.kill()
  const downAt = performance.now()
  await pause(300)
  await redis.restart()
  const backAt = performance.now()
  const reports = [...(await shift.done), ...(await second.done)]
  await Promise.all([crew.end(), redis.stop()])
  provider.close()
  const { calls } = provider
  const refused = calls.filter(({ accepted }) => !accepted).length
  const resumedMs = (calls.find(({ at }) => at > backAt)?.at ?? Infinity) - backAt
  const inNextSecond = calls.filter(
    ({ at }) => at > backAt + resumedMs && at <= backAt + resumedMs + 1000,
  ).length
  const longestMs = Math.max(...reports.map((report) => report.longestMs))
  const sum = (name: 'ok' | 'aborted' | 'failed' | 'denied'): number =>
    reports.reduce((total, report) => total + report[name], 0)
  const inASecond = mostIn(calls, 1000)
  return {
    // The last: whatever else happens, no call outlives maxWait and the deadlines.
    holds: provider.mostAtOnce <= AT_ONCE && reports.length === WORKERS && longestMs < 25_000,
    pass: refused === 0 && provider.mostAtOnce <= AT_ONCE && reports.length === WORKERS && resumedMs <= 1000,
    figure:
      `${WORKERS} processes, ${(forMs / 1000).toFixed(0)} s, ${AT_ONCE} at once and ${OURS} per 10 s of ${LIMIT}, a third aborted, one killed, ` +
      `Redis away for ${(backAt - downAt).toFixed(0)} ms: ${refused} x 429, at most ${inASecond} in a second and ` +
      `${provider.mostAtOnce} at once; ${sum('ok')} ok, ${sum('aborted')} aborted, ${sum('failed')} failed, ` +
      `${sum('denied')} denied, the longest ${longestMs.toFixed(0)} ms; first call ${resumedMs.toFixed(0)} ms after ` +
      `Redis was back, ${inNextSecond} in the second after`,
  }
}
