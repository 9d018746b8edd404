import { createLimiter, gcra, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { kbPerMinute, sample, type Sample, withoutCompilers } from '@sluice/harness/figures'
import { pause, startRedis, until } from '@sluice/harness/redis'
import type { Outcome, Row } from '../row.js'

/** A minute of steady traffic by callers who come and go: what is used at its end was used at its beginning. */
export const row: Row = {
  number: 26,
  fault: 'soak',
  timed: true,
  run: (share) => withoutCompilers(() => soak(share)),
}

const PER_SECOND = 20_000
/** Part of the calls that Redis decides: what one process of a busy machine can send beside the others. */
const BY_REDIS = 0.1
const ROUND_MS = 4000
/** Long enough for every window to end: when its keys are swept, what is left is what is kept. */
const REST_MS = 1500
const WARM_ROUNDS = 4
const BAR_KB = 50

/**
 * Lets limiters run for a long time with keys that come and go. Passes if neither the heap nor the handles of the process
 * grow, and the load was what it should be. `share` is the part of the full load, 0 to 1.
 */
async function soak(share: number): Promise<Outcome> {
  const server = await startRedis()
  const store = redisStore({ host: server.host, port: server.port })
  const memory = memoryStore()
  const limiters = {
    memory: createLimiter({
      name: 'soak',
      store: memory,
      policies: [gcra({ limit: 5, window: '1s' }), slidingLog({ limit: 9, window: '1s' })],
    }),
    redis: createLimiter({
      name: 'soak',
      store,
      deadline: '10s',
      policies: [slidingLog({ limit: 1, window: '1s' })],
    }),
  }
  const rounds = Math.max(WARM_ROUNDS + 5, Math.ceil((60_000 * share) / ROUND_MS))
  const samples: Sample[] = []
  let calls = 0
  for (let round = 0; round < rounds; round++) {
    calls += await traffic(limiters)
    await pause(REST_MS)
    await until('every key to be swept', () => memory.size === 0)
    if (round >= WARM_ROUNDS) samples.push(sample())
  }
  await Promise.all(Object.values(limiters).map((limiter) => limiter.close()))
  await memory.close()
  await store.close()
  await server.stop()

  const slope = kbPerMinute(samples)
  const resources = [...new Set(samples.map((taken) => taken.resources))]
  const rate = calls / ((rounds * ROUND_MS) / 1000)
  return {
    pass: slope <= BAR_KB && resources.length === 1 && rate > 0.9 * PER_SECOND,
    figure:
      `${calls} calls, ${rate.toFixed(0)} a second, ${100 * BY_REDIS} % by Redis: heap ${slope.toFixed(0)} kB a minute ` +
      `(bar ${BAR_KB}) over ${samples.length} samples; timers and handles: ${resources.join(' or ')}`,
  }
}

/** Makes calls at an even pace for one round. Returns how many. */
async function traffic({ memory, redis }: Record<'memory' | 'redis', Limiter>): Promise<number> {
  const began = performance.now()
  let made = 0
  while (performance.now() < began + ROUND_MS) {
    const due = (Math.min(performance.now() - began, ROUND_MS) / 1000) * PER_SECOND
    for (; made < due; made++) {
      call(made % 100 < 100 * BY_REDIS ? redis : memory)
    }
    await pause(2)
  }
  return made
}

/** Makes one call of a random key, of others each second; some come back so soon that they are denied. */
function call(limiter: Limiter): void {
  const seconds = Math.floor(performance.now() / 1000)
  const decided = limiter.decide(`user:${seconds}:${Math.floor(Math.random() * 10_000)}`)
  if (!('allowed' in decided)) void decided
}
