import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { kbPerMinute, sample, type Sample, withoutCompilers } from '@sluice/harness/figures'
import { pause, startRedis } from '@sluice/harness/redis'
import { limitFetch } from '../../src/index.js'
import type { Outcome, Proof } from './proof.js'

/** A minute of calls with a limiter and a semaphore on Redis, to keys that come and go: what is used stays the same. */
export const proof: Proof = {
  title: 'soak',
  timed: true,
  run: (share) => withoutCompilers(() => soak(share)),
}

const [CALLERS, ROUND_MS, REST_MS, WARM_ROUNDS, BAR_KB] = [50, 3000, 700, 5, 50]

async function soak(share: number): Promise<Outcome> {
  const server = await startRedis()
  const store = redisStore({ host: server.host, port: server.port })
  const policies = [gcra({ limit: 100, window: '100ms' })]
  const limiter = createLimiter({ name: 'soak', store, policies, deadline: '10s' })
  const semaphore = createSemaphore({ name: 'soak', store, limit: 10, deadline: '10s' })
  let sent = 0
  /** The other side is a function: the soak is of Sluice, not of an HTTP client. Some calls are refused. */
  const other = async (): Promise<Response> =>
    ++sent % 500 === 0
      ? new Response('no', { status: 429, headers: { 'Retry-After': '1' } })
      : new Response('ok')
  const limited = limitFetch(other, { limiter, semaphore, maxWait: '2s' })
  const rounds = WARM_ROUNDS + Math.max(2, Math.ceil((60_000 * share) / (ROUND_MS + REST_MS)))
  const samples: Sample[] = []
  const tally = { ok: 0, denied: 0, aborted: 0 }
  for (let round = 0; round < rounds; round++) {
    await traffic(limited, tally)
    await pause(REST_MS)
    if (round >= WARM_ROUNDS) samples.push(sample())
  }
  await Promise.all([limiter.close(), semaphore.close()])
  await store.close()
  await server.stop()
  const slope = kbPerMinute(samples)
  const resources = [...new Set(samples.map((taken) => taken.resources))]
  return {
    holds: resources.length === 1,
    pass: slope <= BAR_KB && resources.length === 1,
    figure:
      `${tally.ok} calls, ${tally.aborted} aborted, ${tally.denied} denied, a semaphore and pauses included: heap ${slope.toFixed(0)} kB a minute ` +
      `(bar ${BAR_KB}) over ${samples.length} samples; timers and handles: ${resources.join(' or ')}`,
  }
}

/** A round of calls, some aborted while they wait, to a key of the round and to others that come once. */
async function traffic(
  limited: typeof fetch,
  tally: Record<'ok' | 'denied' | 'aborted', number>,
): Promise<void> {
  const end = performance.now() + ROUND_MS
  const call = async (n: number): Promise<void> => {
    while (performance.now() < end) {
      const host = n % 5 === 0 ? `h${Math.floor(Math.random() * 1e6)}` : `h${n % 7}`
      const controller = new AbortController()
      const timer = n % 4 === 0 ? setTimeout(() => controller.abort(), 20 * Math.random()) : undefined
      try {
        await (await limited(`http://${host}.example/`, { signal: controller.signal })).text()
        tally.ok++
      } catch (error) {
        if ((error as Error).name === 'AbortError') tally.aborted++
        else tally.denied++
      }
      clearTimeout(timer)
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => call(n)))
}
