import { createLimiter, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type Address, command, commandBytes, startRedis } from '@sluice/harness/redis'
import { brokenStates } from '../broken-states.js'
import { everyAlgorithm } from '../every-algorithm.js'
import { policyOf } from '../policy-spec.js'
import type { Outcome, Row, Watch } from '../row.js'

/** A value under a caller's key that cannot be its state is discarded by the first call that meets it, and left as it is by a peek. */
export const row: Row = { number: 16, fault: 'broken state', run: heal }

const LIMIT = 10

/**
 * Puts broken values of many kinds in the place of a key's state, under each algorithm. Passes if a peek leaves them and the next
 * call is decided as on a new key.
 */
async function heal(_share: number, watch?: Watch): Promise<Outcome> {
  const server = await startRedis()
  const store = redisStore({ host: server.host, port: server.port })
  const algorithms = everyAlgorithm(LIMIT)
  const wrong: string[] = []
  let values = 0
  for (const [title, spec] of algorithms) {
    const policy = policyOf(spec)
    const policies = [policy]
    const limiter = createLimiter({ name: 'broken', policies, store, deadline: '5s', onStoreError: 'throw' })
    watch?.(limiter)
    await command(server, 'FLUSHALL')
    await limiter.consume('k', { cost: 3 })
    const [key] = await command<string[]>(server, 'KEYS', '*')
    const state = (await commandBytes(server, 'GET', key!)) as Buffer
    for (const [what, make, isReadLater] of brokenStates(policy, state)) {
      await command(server, 'DEL', key!)
      await command(server, ...make(key!))
      const fault = await faultOf(limiter, server, key!, isReadLater).catch(String)
      if (fault) wrong.push(`${title}, ${what}: ${fault}`)
      values++
    }
  }
  await store.close()
  await server.stop()
  return {
    pass: wrong.length === 0,
    figure:
      `${values} broken values under ${algorithms.length} algorithms: ` +
      (wrong.length === 0
        ? 'each discarded and reported by the first call'
        : `${wrong.length} wrong: ${wrong[0]}`),
  }
}

/**
 * The errors of the calls that meet a broken value: the first drops it, the next are counted from nothing. A slot
 * is only met when the state has passed for sound, and then the first call is not counted. What a plain consume does not
 * read is met by one that waits for its turn.
 */
async function faultOf(
  limiter: Limiter,
  server: Address,
  key: string,
  isReadLater = false,
): Promise<string | undefined> {
  let healed = 0
  const end = limiter.on('healed', () => healed++)
  const before = await commandBytes(server, 'DUMP', key)
  await limiter.peek('k')
  const after = await commandBytes(server, 'DUMP', key)
  if (healed > 0 || Buffer.compare(after as Buffer, before as Buffer) !== 0) return 'a peek wrote'
  const first = isReadLater ? await limiter.acquire('k', { maxWait: 0 }) : await limiter.consume('k')
  const healedAtOnce = healed === 1
  const { remaining } = await limiter.consume('k')
  const third = await limiter.consume('k')
  end()
  const ttl = await command<number>(server, 'PTTL', key)
  const seen = `${first.remaining}, ${remaining}, ${third.remaining} left, ${healed} times healed, TTL ${ttl}`
  const fresh = remaining === LIMIT - 2 || remaining === LIMIT - 1
  const sound = fresh && third.remaining === remaining - 1 && ttl > 0
  return first.allowed && healedAtOnce && healed === 1 && sound ? undefined : seen
}
