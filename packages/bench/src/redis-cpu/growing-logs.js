// The longest script of a log that grows to its limit, by Redis's own SLOWLOG: npm run bench -- growing-logs. Each call is made on several
// keys, and the fastest of them counts, as a machine with other work makes single scripts long.
import { createLimiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { command, startRedis } from '@sluice/harness/redis'

const KEYS = 15
const CALLS = 1000

const server = await startRedis({ args: ['--slowlog-log-slower-than', '0', '--slowlog-max-len', '100'] })
const store = redisStore({ host: server.host, port: server.port }, { denialCache: false })
console.log('limit     usual script   longest script   bytes an entry at the limit')
let shortest = 0
for (const limit of [100, 1000, 10_000, 100_000]) {
  const cost = Math.max(1, limit / CALLS)
  const policies = [slidingLog({ limit, window: '1d' })]
  const limiter = createLimiter({ name: `log-${limit}`, policies, store, deadline: '30s' })
  const times = Array.from({ length: limit / cost }, () => Infinity)
  for (let key = 0; key < KEYS; key++) {
    for (let call = 0; call < times.length; call++) {
      await limiter.consume(`${key}`, { cost })
      times[call] = Math.min(times[call] ?? Infinity, await latestScript())
    }
  }
  const [first] = await command(server, 'KEYS', `*log-${limit}:*`)
  const bytes = Number(await command(server, 'MEMORY', 'USAGE', String(first))) / limit
  const sorted = times.toSorted((a, b) => a - b)
  const [usual, longest] = [sorted[Math.floor(sorted.length / 2)] ?? 0, sorted.at(-1) ?? 0]
  shortest ||= longest
  console.log(
    `${String(limit).padEnd(9)} ${`${usual} us`.padEnd(14)} ` +
      `${`${longest} us, ${(longest / shortest).toFixed(1)} times`.padEnd(22)} ${bytes.toFixed(1)}`,
  )
  await limiter.close()
}
await store.close()
await server.stop()

/** How long the latest script took, in microseconds. */
async function latestScript() {
  const entries = await command(server, 'SLOWLOG', 'GET', '5')
  for (const [, , us, [name]] of /** @type {[number, number, number, string[]][]} */ (
    /** @type {unknown} */ (entries)
  ))
    if (/^eval/i.test(String(name))) return us
  throw new Error('no script ran')
}
