import { createLimiter, gcra, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { setTimeout as sleep } from 'node:timers/promises'

/** What became of a call; instants of `Date.now()`, the same clock for all processes of a machine. */
export interface Outcome {
  readonly result: 'allowed' | 'denied' | 'failed'
  readonly askedAt: number
  readonly answeredAt: number
}

const { REDIS_URL = 'redis://localhost:6379', ACCOUNT = 'acme' } = process.env
const callsPerMinute = Number(process.env['CALLS_PER_MINUTE'] ?? 600)
/** How often this process asks. 0: it waits for its turn before each call, and is never denied. */
const callsPerSecond = Number(process.env['CALLS_PER_SECOND'] ?? 20)

// The same in every process: name and key select the state in Redis, so the limit is one for all of them.
const rate = { limit: callsPerMinute, window: '1m' } as const
const store = redisStore(REDIS_URL)
const limiter = createLimiter({
  name: 'fleet',
  policies: [callsPerSecond > 0 ? slidingLog(rate) : gcra({ ...rate, burst: 1 })],
  store,
  deadline: '5s', // that every call counts matters more here than an answer in time
  onStoreError: 'throw',
})

const stop = new AbortController()
for (const event of ['SIGINT', 'SIGTERM', 'disconnect']) process.once(event, () => stop.abort())

await store.ready().catch(({ message }: Error) => {
  console.error(message)
  process.exit(1)
})
const { signal } = stop
const startedAt = performance.now()
for (let call = 1; !signal.aborted; call++) {
  await ask()
  const dueAt = callsPerSecond > 0 ? startedAt + (call * 1000) / callsPerSecond : 0
  await sleep(Math.max(0, dueAt - performance.now()), undefined, { signal }).catch(() => {})
}
await limiter.close()
await store.close()
if (process.connected) process.disconnect()

async function ask(): Promise<void> {
  const askedAt = Date.now()
  try {
    // `acquire` books the next turn in Redis, first come, first served, and resolves when it has come.
    const decision = await (callsPerSecond > 0
      ? limiter.consume(ACCOUNT)
      : limiter.acquire(ACCOUNT, { signal }))
    report({ result: decision.allowed ? 'allowed' : 'denied', askedAt, answeredAt: Date.now() })
  } catch (error) {
    if (error !== signal.reason) report({ result: 'failed', askedAt, answeredAt: Date.now() })
  }
}

/** The work itself would be done here. */
function report(outcome: Outcome): void {
  if (process.send) process.send(outcome)
  else console.log(outcome.result)
}
