import { createLimiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { Redis } from 'ioredis'
import { type Address, command, startRedis } from '@sluice/harness/redis'
import type { Outcome, Row } from '../row.js'

/** A large log that fills by corrections keeps other clients of Redis waiting no longer than it takes to copy it once now and then. */
export const row: Row = { number: 45, fault: 'settled logs', run: settle }

const LIMIT = 100_000
/** A log doubles from 4 entries to its limit, and has grown to twice of that in eighths; and it begins once. */
const MOST_COPIES = 1 + Math.ceil(Math.log2(LIMIT)) + 8

/**
 * Settles calls at far more than they were charged, on sliding logs in Redis. Passes if Redis copies a log only a few times
 * for that, as each copy holds up its other clients. `share` is the part of the full load, 0 to 1.
 */
async function settle(share: number): Promise<Outcome> {
  const server = await startRedis()
  const { host, port } = server
  const store = redisStore({ host, port })
  const policies = [slidingLog({ limit: LIMIT, window: '1h' })]
  const limiter = createLimiter({ name: 'log', policies, store, deadline: '1m', onStoreError: 'throw' })
  const others = new Redis(port, host)
  const pings = pingUntilEnd(others)
  let most = 0
  await command(server, 'CONFIG', 'SET', 'slowlog-log-slower-than', '1000', 'slowlog-max-len', '1000')
  try {
    for (let i = 0; i < Math.max(1, 20 * share); i++) {
      const decision = await limiter.consume(`k${i}`)
      await command(server, 'CONFIG', 'RESETSTAT')
      await decision.settle(2 * LIMIT)
      // SET is the only command that writes a log as a whole.
      const stats = await command<string>(server, 'INFO', 'commandstats')
      most = Math.max(most, Number(/^cmdstat_set:calls=(\d+)/m.exec(stats)?.[1] ?? Infinity))
    }
    const figure =
      `a log of ${LIMIT} entries settled at twice as many: copied ${most} times (bar ${MOST_COPIES}); ` +
      `the longest command took Redis ${await longestCommandMs(server)} ms, ` +
      `a PING beside it ${(await pings()).toFixed(1)} ms at most`
    return { pass: most <= MOST_COPIES, figure }
  } finally {
    await limiter.close()
    await store.close()
    others.disconnect()
    await server.stop()
  }
}

/**
 * How many milliseconds the longest command took by Redis's own clock, as text: a PING also waits for its turn on a busy
 * machine.
 */
async function longestCommandMs(server: Address): Promise<string> {
  const slow = await command<[id: number, at: number, us: number][]>(server, 'SLOWLOG', 'GET', '1000')
  return (Math.max(0, ...slow.map(([, , us]) => us)) / 1000).toFixed(1)
}

/** Asks again and again. The returned function ends that, and resolves with the milliseconds of the longest answer. */
function pingUntilEnd(client: Redis): () => Promise<number> {
  let [longest, ended] = [0, false]
  const running = (async () => {
    while (!ended) {
      const began = performance.now()
      await client.ping()
      longest = Math.max(longest, performance.now() - began)
    }
  })()
  return async () => {
    ended = true
    await running
    return longest
  }
}
