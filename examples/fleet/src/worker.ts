import { setTimeout as sleep } from 'node:timers/promises'
import type { Decision, Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { Redis } from 'ioredis'
import { fleetLimiter } from './limit.js'
import { emptyTally } from './tally.js'

/** What a process of the fleet is started with. */
export interface Job {
  readonly url: string
  readonly key: string
  readonly even: boolean
  /** Of calls, where they do not wait for their turn. */
  readonly callsPerSecond: number
}

const REPORTS_PER_SECOND = 10

const stop = new AbortController()
const tally = emptyTally()
const begin = new Promise<void>((resolve) => {
  process.on('message', (order) => (order === 'begin' ? resolve() : stop.abort()))
})
await main(JSON.parse(process.argv[2]!) as Job)

async function main(job: Job): Promise<void> {
  process.once('disconnect', () => process.exit())
  const redis = new Redis(job.url, { maxRetriesPerRequest: 0 })
  const limiter = fleetLimiter(redisStore(redis), job.even)
  await limiter.peek(job.key)
  process.send?.('ready')
  await begin
  const reports = setInterval(() => process.send?.(tally), 1000 / REPORTS_PER_SECOND)
  await (job.even ? waitForTurns(limiter, job.key) : askSteadily(limiter, job))
  clearInterval(reports)
  await limiter.close()
  redis.disconnect()
  process.send?.(tally, () => process.disconnect())
}

/** Calls at a steady rate, whatever the answers are. */
async function askSteadily(limiter: Limiter, { key, callsPerSecond }: Job): Promise<void> {
  const startedAt = performance.now()
  for (let call = 0; !stop.signal.aborted; call++) {
    const dueAt = startedAt + (call * 1000) / callsPerSecond
    await sleep(Math.max(0, dueAt - performance.now()), undefined, { signal: stop.signal }).catch(() => {})
    if (!stop.signal.aborted) await count(() => limiter.consume(key))
  }
}

/** Asks for a turn as soon as the one before has come. */
async function waitForTurns(limiter: Limiter, key: string): Promise<void> {
  while (!stop.signal.aborted) await count(() => limiter.acquire(key, { signal: stop.signal }))
}

async function count(ask: () => Promise<Decision>): Promise<void> {
  tally.firstAskedAt ||= Date.now()
  try {
    const { allowed } = await ask()
    tally[allowed ? 'allowed' : 'refused']++
  } catch (error) {
    if (error === stop.signal.reason) return
    tally.failed++
  }
  tally.asked++
  tally.lastAnsweredAt = Date.now()
}
